//! Artificial bit rot.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use serde_json::Value;

use super::{KERNEL, Lab};

/// Pseudo-random numbers from a seed (SplitMix64; Steele, Lea and Flood 2014).
pub struct Random(u64);

impl Random {
    /// The sequence of numbers for this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A random number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }
}

/// Flips `bits` random bits in the parts of a file that contain data.
pub fn flip(path: &Path, bits: usize, random: &mut Random) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut runs = Vec::new();
    let mut at = 0;
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(start)).unwrap();
        runs.push((start, at - start));
    }
    let data: u64 = runs.iter().map(|(_, length)| length).sum();
    assert!(data > 0, "{} is empty", path.display());
    for _ in 0..bits {
        let mut place = random.below(data);
        for (start, length) in &runs {
            if place < *length {
                let mut byte = [0];
                file.read_exact_at(&mut byte, start + place).unwrap();
                byte[0] ^= 1 << random.below(8);
                file.write_all_at(&byte, start + place).unwrap();
                break;
            }
            place -= length;
        }
    }
}

/// The tests' kernel in the shared cache, as a list of its files that can be added to another cache.
pub fn kernel_files(shared: &Lab) -> String {
    files_of(shared, KERNEL)
}

/// The kernel `wanted` in the shared cache, as a list of its files that can be added to another cache.
pub fn files_of(shared: &Lab, wanted: &str) -> String {
    let kernels: Value =
        serde_json::from_str(&shared.ends(0, ["list", "kernels", "--json"]).0).unwrap();
    let kernel = kernels
        .as_array()
        .unwrap()
        .iter()
        .find(|kernel| {
            kernel["names"]
                .as_array()
                .unwrap()
                .iter()
                .any(|name| name == wanted)
        })
        .unwrap();
    let folder = shared
        .cache()
        .join("kernels")
        .join(kernel["digest"].as_str().unwrap());
    let path = |name: &str| folder.join(name).display().to_string();
    format!(
        "image:{},modules:{},config:{}",
        path("image"),
        path("modules"),
        path("config")
    )
}
