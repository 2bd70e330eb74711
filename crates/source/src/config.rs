//! The configuration of a built kernel: pagetide's own options, overridden by the user's options.

use std::collections::BTreeMap;

/// Options that a kernel for the exact arena needs, and no others. A kernel with these options builds in minutes and
/// boots without hardware.
pub const FRAGMENT: &str = include_str!("fragment.config");

/// Options that override a distribution's configuration.
pub const OVER_DISTRIBUTION: &str = include_str!("distribution.config");

/// Values of options by name without `CONFIG_`. The value is `n` for options that must not be set.
pub type Options = BTreeMap<String, String>;

/// Parses lines `CONFIG_X=…` and `# CONFIG_X is not set`; a later line overrides an earlier one.
pub fn options(text: &str) -> Options {
    text.lines().filter_map(option).collect()
}

fn option(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if let Some(name) = line
        .strip_prefix("# CONFIG_")
        .and_then(|rest| rest.strip_suffix(" is not set"))
    {
        return Some((name.to_owned(), "n".to_owned()));
    }
    let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

/// Returns the options in `under`, overridden by those in `over`.
pub fn merged(under: &Options, over: &Options) -> Options {
    let mut all = under.clone();
    all.extend(
        over.iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    all
}

/// Returns a distribution's configuration changed for pagetide: with only those modules that a trial may load, and with
/// the options that a guest needs.
pub fn of_distribution(text: &str) -> Options {
    let over = options(OVER_DISTRIBUTION);
    let mut all = options(text);
    for (name, value) in &mut all {
        if value == "m" && !over.contains_key(name) {
            "n".clone_into(value);
        }
    }
    for (name, value) in over {
        let is_built_in = all.get(&name).is_some_and(|now| now == "y");
        if !(value == "m" && is_built_in) {
            all.insert(name, value);
        }
    }
    all
}

/// Formats options as the text of a `.config` file.
pub fn text(options: &Options) -> String {
    options.iter().fold(String::new(), |text, (name, value)| {
        text + &match value.as_str() {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        }
    })
}

/// Returns the requested options that have another value in `got`, each as text with the requested and, if set, the
/// actual value.
pub fn not_taken(asked: &Options, got: &Options) -> Vec<String> {
    asked
        .iter()
        .filter_map(|(name, wanted)| {
            let got = got.get(name).map_or("n", String::as_str);
            (got != wanted).then(|| match got {
                "n" => format!("CONFIG_{name}={wanted}"),
                got => format!("CONFIG_{name}={wanted} (it is {got})"),
            })
        })
        .collect()
}

/// Returns the option that enables an object according to a Makefile with lines such as `obj-$(CONFIG_ZSWAP) +=
/// zswap.o`. `None` if the object is always built, or is part of another object.
pub fn option_of(makefile: &str, object: &str) -> Option<String> {
    // A line that ends with a backslash continues on the next line.
    let joined = makefile.replace("\\\n", " ");
    joined.lines().find_map(|line| {
        let (left, right) = line.split_once("+=").or_else(|| line.split_once(":="))?;
        let is_named = right.split_whitespace().any(|word| word == object);
        let (_, rest) = left.split_once("$(CONFIG_").filter(|_| is_named)?;
        let name = rest.split(')').next()?;
        Some(format!("CONFIG_{name}"))
    })
}

/// Maximum accepted size of a file with kernel options, in bytes. Debian's file has 300 KB.
pub const MAX_CONFIG_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_options_win_and_all_that_were_not_taken_are_named() {
        let user = options("CONFIG_HZ_250=n\nCONFIG_ZSWAP=y\n# CONFIG_SWAP is not set\n# a word\n");
        let all = merged(&options(FRAGMENT), &user);
        assert_eq!(all["SWAP"], "n");
        assert_eq!(all["64BIT"], "y");
        let got = options("CONFIG_64BIT=y\nCONFIG_SWAP=y\n");
        assert_eq!(
            not_taken(&user, &got),
            ["CONFIG_SWAP=n (it is y)", "CONFIG_ZSWAP=y"]
        );
        assert_eq!(not_taken(&options(&text(&all)), &all), Vec::<String>::new());
    }

    #[test]
    fn the_fragment_says_each_option_once() {
        let lines = FRAGMENT.lines().filter_map(option).count();
        assert_eq!(lines, options(FRAGMENT).len());
        assert!(lines > 50);
    }

    #[test]
    fn of_a_distributions_modules_those_of_trials_are_left_and_its_core_is_as_it_was() {
        let text = "CONFIG_PSI=y\nCONFIG_DRM=m\nCONFIG_XFS_FS=m\nCONFIG_EXT4_FS=y\nCONFIG_MODULE_SIG=y\nCONFIG_HZ=250\n\
                    # CONFIG_KASAN is not set\nCONFIG_DEVMEM=n\n";
        let all = of_distribution(text);
        for (name, value) in [
            ("PSI", "y"),
            ("HZ", "250"),
            ("KASAN", "n"),
            ("DRM", "n"),
            ("XFS_FS", "m"),
            ("EXT4_FS", "y"),
            ("BLK_DEV_NULL_BLK", "m"),
            ("DEVMEM", "y"),
            ("MODULE_SIG", "n"),
        ] {
            assert_eq!(all[name], value, "{name}");
        }
    }

    #[test]
    fn the_option_of_an_object_is_read_from_its_makefile() {
        let makefile = "obj-y := filemap.o \\\n\tvmscan.o\nobj-$(CONFIG_SWAP)\t+= page_io.o swap_state.o \\\n\t\tswapfile.o\nobj-$(CONFIG_ZSWAP) += zswap.o\n";
        assert_eq!(
            option_of(makefile, "zswap.o").as_deref(),
            Some("CONFIG_ZSWAP")
        );
        assert_eq!(
            option_of(makefile, "swapfile.o").as_deref(),
            Some("CONFIG_SWAP")
        );
        assert_eq!(option_of(makefile, "vmscan.o"), None);
    }
}
