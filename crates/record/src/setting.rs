//! Compares values of settings, whose spelling differs between kernels.

/// Returns the numeric value of a word in a setting: booleans have many spellings, masks are hexadecimal, sizes have
/// units (kernel `lib/kstrtox.c`, `kstrtobool`, and `lib/cmdline.c`, `memparse`). `None` if it is not a number.
fn number(word: &str) -> Option<u64> {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "on" | "enabled" => return Some(1),
        "n" | "no" | "false" | "off" | "disabled" => return Some(0),
        _ => {}
    }
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    let digits = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (digits, unit) = word.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Returns true if two words mean the same value, such as `1` and `Y`.
fn same(wanted: &str, found: &str) -> bool {
    wanted == found || number(wanted).is_some_and(|wanted| number(found) == Some(wanted))
}

/// Returns true if the content `found` of a setting's file means the same value as `wanted`. Files show choices in
/// brackets, masks in hexadecimal, booleans as letters or words, and sizes without units.
pub fn means(found: &str, wanted: &str) -> bool {
    let (wanted, found) = (wanted.trim(), found.trim());
    if wanted == found {
        return true;
    }
    if let Some(chosen) = found
        .split_whitespace()
        .find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))
    {
        return same(wanted, chosen);
    }
    // Writing `y` to a mask of features enables all of them (kernel `Documentation/admin-guide/mm/multigen_lru.rst`).
    if wanted.eq_ignore_ascii_case("y") && found.starts_with("0x") {
        return number(found).is_some_and(|mask| mask != 0);
    }
    let (mut of_wanted, mut of_found) = (wanted.split_whitespace(), found.split_whitespace());
    loop {
        match (of_wanted.next(), of_found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if same(wanted, found) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_show_is_understood_in_the_kernels_own_spelling() {
        assert!(means("always [madvise] never", "madvise"));
        assert!(!means("always [madvise] never", "always"));
        assert!(means("0x0007", "7"));
        assert!(means("0x0007", "y"));
        assert!(!means("0x0000", "y"));
        assert!(means("Y", "1"));
        assert!(means("0x0000", "0"));
        assert!(!means("100", "60"));
        assert!(means("256\t32\t0", "256 32 0"));
        // swap/vma_ra_enabled accepts 0 and 1 but shows words.
        for (yes, no) in [("1", "0"), ("true", "false"), ("Y", "N"), ("on", "off")] {
            for (shows_yes, shows_no) in [("true", "false"), ("Y", "N"), ("1", "0")] {
                assert!(
                    means(shows_yes, yes) && means(shows_no, no),
                    "{yes} {shows_yes}"
                );
                assert!(
                    !means(shows_no, yes) && !means(shows_yes, no),
                    "{yes} {shows_no}"
                );
            }
        }
        assert!(means("65536", "64K") && means("1024K", "1M") && means("2147483648", "2G"));
        assert!(!means("64", "64K") && !means("65537", "64K"));
        assert!(means("0 [1] 2", "1") && !means("[0] 1 2", "1"));
        assert!(means("256 32768", "256 32K") && !means("256 32 0", "256 32"));
        assert!(!means("[lzo] lz4", "lz4") && !means("0", ""));
        assert!(means("Y\n", "Y") && means("always madvise [never]", "never"));
        assert!(
            !means("0x0007", "5") && !means("0x0007", "07x") && !means("[lzo] lzo-rle", "lzo-rle")
        );
        assert!(!means("", "0") && !means("3", "0"));
    }
}
