//! Writes series directly into frames of the output region, so that they use no other memory.

use pagetide_quantity::{Series, Unit};
use pagetide_record::wire::{Kind, Region};

/// A column of a series: name, unit, and a function that returns the value in a row.
pub(crate) type Column<'a> = (&'a str, Unit, &'a mut dyn FnMut(usize) -> i64);

/// Writes an integer series in the format of [`Series::encode`]. Returns false if the region is full.
pub(crate) fn write_series(
    region: &Region,
    name: &str,
    rows: usize,
    columns: &mut [Column<'_>],
) -> bool {
    let Some(head) = head(columns, rows) else {
        return false;
    };
    let size = 4 + head.len() + rows * 8 * columns.len();
    let Ok(mut frame) = region.frame(Kind::Series, name, size) else {
        return false;
    };
    let body = frame.body();
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    body[..4].copy_from_slice(&length.to_le_bytes());
    body[4..4 + head.len()].copy_from_slice(&head);
    let (words, _) = body[4 + head.len()..size].as_chunks_mut::<8>();
    let mut words = words.iter_mut();
    for (_, _, value) in columns {
        let mut before = 0_i64;
        for (row, word) in (0..rows).zip(&mut words) {
            let value = value(row);
            *word = value.wrapping_sub(before).to_le_bytes();
            before = value;
        }
    }
    frame.finish(size);
    true
}

/// Returns the JSON head that [`Series::encode`] writes for these columns and this number of rows.
///
/// The crate of [`Series`] does not export the format of the head, so it is taken from the encoding of a series with
/// the same columns and no rows.
fn head(columns: &[Column<'_>], rows: usize) -> Option<Vec<u8>> {
    let empty = columns
        .iter()
        .fold(Series::new(""), |series, (name, unit, _)| {
            series.int(name, *unit, [])
        });
    let encoded = empty.encode();
    let mut head: serde_json::Value = serde_json::from_slice(encoded.get(4..)?).ok()?;
    *head.get_mut("rows")? = rows.into();
    serde_json::to_vec(&head).ok()
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Pages;
    use pagetide_record::wire;

    use super::*;
    use crate::mapping::Mapping;

    fn region(memory: &Mapping) -> Region<'_> {
        // SAFETY: the mapping is page aligned and borrowed as long as the region lives; no frame was handed out yet.
        unsafe {
            let region = Region::new(memory.start(), memory.bytes());
            region.format();
            region
        }
    }

    #[test]
    fn a_streamed_series_reads_back_as_if_it_had_been_encoded() {
        let memory = Mapping::shared(Pages(8)).unwrap();
        let region = region(&memory);
        let rows = 100_usize;
        let page = |row: usize| i64::try_from(row).unwrap() * 3 - 50;
        assert!(write_series(
            &region,
            "pages",
            rows,
            &mut [
                ("page", Unit::Pages, &mut |row| page(row)),
                ("age", Unit::Count, &mut |row| -page(row))
            ],
        ));
        // SAFETY: the frame is finished, and no other code uses the region.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start(), memory.bytes()) };
        let frame = wire::frames(bytes).next().unwrap();
        let expected = Series::new("pages")
            .int("page", Unit::Pages, (0..rows).map(page))
            .int("age", Unit::Count, (0..rows).map(|row| -page(row)));
        assert_eq!(Series::decode("pages", frame.bytes), Ok(expected));
    }

    #[test]
    fn a_series_that_does_not_fit_is_refused() {
        let memory = Mapping::shared(Pages(2)).unwrap();
        let region = region(&memory);
        assert!(!write_series(
            &region,
            "pages",
            1000,
            &mut [("page", Unit::Pages, &mut |_| 0)]
        ));
    }
}
