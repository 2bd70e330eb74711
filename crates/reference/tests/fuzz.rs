//! Fuzzes files of references.

use pagetide_reference::{check_file, pack_file};
use pagetide_testing::fuzz::fuzz;

#[test]
fn reference_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refs");
    let text = b"4\n0\n17\n3\n".repeat(40);
    std::fs::write(&path, &text).unwrap();
    let mut packed = std::io::Cursor::new(Vec::new());
    pack_file(&path, 100, &mut packed).unwrap();
    let corpus = [
        text,
        packed.into_inner(),
        b"# a comment\n1 2 3\n".to_vec(),
        Vec::new(),
    ];
    fuzz("references", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        check_file(&path, 100)
            .map(drop)
            .map_err(|why| why.to_string())?;
        pack_file(&path, 100, &mut std::io::Cursor::new(Vec::new()))
            .map(drop)
            .map_err(|why| why.to_string())
    });
}
