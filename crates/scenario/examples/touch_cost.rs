//! Measures the overhead of the timed touch loop in one process, without the clock reads and the accesses themselves.
//!
//! Prints counter ticks per access for one clock read, one untimed access, and one access in the timed loop with
//! histogram and log. Then prints the ratio of the time in the loop to the sum of the other two, which must not exceed
//! 1.3. The workload is in memory and accessed in random order.

use std::error::Error;
use std::hint::black_box;

use pagetide_record::wire::Region;
use pagetide_reference::Rng;
use pagetide_scenario::Clock;
use pagetide_scenario::touch::{Amount, Offset, Recorder, Touch};
use pagetide_testing::bound::bound;

const PAGE: usize = 4096;
const PAGES: usize = 512;
const BATCH: usize = 1024;
const ACCESSES: usize = 1 << 16;
const ROUNDS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    // The values are counter ticks; only their ratio is checked.
    let clock = Clock::RawTsc;
    let workload = map(PAGES * PAGE)?;
    let output = map(ACCESSES * 16 + (1 << 20))?;
    // SAFETY: the mapping is page aligned, shared, of this size, and stays until the process ends.
    let region = unsafe { Region::new(output, ACCESSES * 16 + (1 << 20)) };
    let mut rng = Rng::new(1);
    let batch: Vec<u32> = (0..BATCH).map(|_| rng.below_u32(512)).collect();
    // SAFETY: the pages are never unmapped, and are reached through raw pointers only.
    let touch = unsafe { Touch::new(workload, PAGES as u64, Amount::Word, Offset::Spread) };
    for page in 0..PAGES {
        // SAFETY: the page lies within the mapping.
        unsafe { workload.add(page * PAGE).write(1) };
    }

    let (mut read, mut access, mut timed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        read.push(each(clock, || {
            for _ in 0..ACCESSES {
                black_box(clock.now());
            }
        }));
        access.push(each(clock, || {
            for _ in 0..ACCESSES / BATCH {
                for page in &batch {
                    // Selects the same word as `Offset::Spread`.
                    let offset = (page.wrapping_mul(0x9e37_79b9) >> 20) & 0xfc0;
                    let at = *page as usize * PAGE + offset as usize;
                    #[expect(clippy::cast_ptr_alignment, reason = "offsets are multiples of 64")]
                    let word = workload.wrapping_add(at).cast::<u64>();
                    // SAFETY: the batch has pages of the workload only, and a word at this offset lies within its page.
                    unsafe { word.read_volatile() };
                }
            }
        }));
        // SAFETY: the recorder of the previous round was dropped, and its frame with it.
        unsafe { region.format() };
        let mut recorder = Recorder::new()?;
        recorder.log_to(&region, "access-log", ACCESSES as u64);
        timed.push(each(clock, || {
            for _ in 0..ACCESSES / BATCH {
                recorder.touch(clock, &touch, &batch);
            }
        }));
        if let Some(warning) = recorder.finish() {
            return Err(warning.to_string().into());
        }
    }
    let (read, access, timed) = (fastest(&read), fastest(&access), fastest(&timed));
    println!("one clock read:                            {read:6.2} ticks");
    println!("one untimed access:                        {access:6.2} ticks");
    println!("one access timed, with histogram and log:  {timed:6.2} ticks");
    let ratio = timed / (read + access);
    println!("ratio to clock read and untimed access:    {ratio:6.3}");
    if bound(
        "a timed access, of clock read and untimed access",
        ratio,
        1.3,
        "",
    ) {
        Ok(())
    } else {
        Err("a timed access costs too much".into())
    }
}

/// Runs `work` and returns its duration in ticks per access.
fn each(clock: Clock, work: impl FnOnce()) -> f64 {
    let start = clock.now();
    work();
    clock.now().since(start).0 as f64 / ACCESSES as f64
}

/// Returns the smallest value: the round that was least disturbed by other load.
fn fastest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn map(size: usize) -> Result<*mut u8, Box<dyn Error>> {
    let (rights, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
    );
    // SAFETY: the kernel chooses the address, so no memory in use is touched.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(base.cast())
}
