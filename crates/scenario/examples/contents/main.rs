//! Writes pages of generated contents, so that other programs can compress them.
//!
//! `contents redis 2048 [SEED]` writes 2,048 pages of the content `redis` to standard output. `contents grid SHAPES`
//! writes 12 pages of each shape of a grid to standard output, and the parameters of the shapes to the file SHAPES, one
//! shape a line. `fit.py` chooses among these shapes. `docs/notes/contents.md` describes how the contents were fitted
//! to pages of real programs.

use std::io::Write;

use pagetide_reference::Rng;

#[path = "../../src/content/stream.rs"]
#[expect(dead_code, reason = "only the grid's shapes are needed")]
mod stream;

use stream::Shape;

/// Size of a page.
const PAGE: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match arguments.as_slice() {
        [grid, shapes] if grid == "grid" => {
            let mut shapes = std::io::BufWriter::new(std::fs::File::create(shapes)?);
            for shape in all() {
                writeln!(
                    shapes,
                    "{} {} {} {}",
                    shape.literals, shape.copies, shape.zeros, shape.symbols
                )?;
                write_pages(shape, &mut out)?;
            }
            shapes.flush()?;
        }
        [content, count, seed @ ..] => {
            let seed = seed.first().map_or(Ok(1), |seed| seed.parse())?;
            for page in pagetide_scenario::pages(content, seed, count.parse()?)? {
                out.write_all(&page)?;
            }
        }
        _ => return Err("give a content and a number of pages, or grid and a file".into()),
    }
    Ok(out.flush()?)
}

/// Returns the shapes of the grid: all combinations of the values listed for each parameter of a shape.
fn all() -> Vec<Shape> {
    let mut all = Vec::new();
    for literals in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100] {
        for copies in [
            1, 2, 4, 6, 9, 12, 16, 20, 26, 34, 45, 64, 100, 200, 400, 1000,
        ] {
            for zeros in [0, 30, 60, 90] {
                for symbols in [3, 4, 6, 8, 12, 16, 24, 48, 96, 160, 255] {
                    all.push(Shape::new(literals, copies, zeros, symbols));
                }
            }
        }
    }
    all
}

/// Fills 4 buffers with bytes of this shape, and writes 3 pages from each buffer. Pages are taken from a buffer as the
/// generator takes pages from its pool.
fn write_pages(shape: Shape, out: &mut impl Write) -> std::io::Result<()> {
    for seed in 0..4 {
        let mut rng = Rng::stream(seed, &format!("{shape:?}"));
        let mut bytes = vec![0; 4 * PAGE];
        shape.fill(&mut bytes, &mut rng);
        for _ in 0..3 {
            let from = usize::try_from(rng.below(3 * 512)).unwrap_or(0) * 8;
            out.write_all(&rng.next_u64().to_le_bytes())?;
            out.write_all(&bytes[from + 8..from + PAGE])?;
        }
    }
    Ok(())
}
