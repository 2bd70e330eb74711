//! Suggestions for mistyped names.

/// Minimum similarity of a name that is suggested, 0 to 1.
const NEAR: f64 = 0.6;
/// Maximum number of names in a list that a hint prints in full.
const FEW: usize = 6;
/// Number of similar names that a hint prints from a longer list.
const NEAREST: usize = 3;
/// Maximum length of a name that is compared, in bytes. Comparison time grows with the product of both lengths, and
/// longer names are not typing errors.
const LONGEST: usize = 200;

/// Returns the similarity of two names, 0 to 1: one minus their normalised Damerau-Levenshtein distance. Ignores case;
/// spaces and underscores count as hyphens. A name longer than [`LONGEST`] is similar to itself only.
fn likeness(a: &str, b: &str) -> f64 {
    if a.len() > LONGEST || b.len() > LONGEST {
        return if a == b { 1.0 } else { 0.0 };
    }
    let plain = |name: &str| name.to_lowercase().replace([' ', '_'], "-");
    strsim::normalized_damerau_levenshtein(&plain(a), &plain(b))
}

/// Returns the candidate most similar to `text`; `None` if no candidate is similar.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|name| (likeness(text, name), name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// Returns the most similar candidate if it differs from `text` by one or two typing errors. `None` if there is no such
/// candidate, or if `text` itself is a candidate.
pub fn slip<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, candidates)
        .filter(|near| near != text && strsim::damerau_levenshtein(text, near) <= 2)
}

/// Returns a hint for an unknown name: the most similar known name if there is a similar one. Otherwise the list
/// returned by [`choices`].
pub fn hint<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone, all: &str) -> String {
    match nearest(text, names.clone()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => choices(text, names, all),
    }
}

/// Returns a list of known names to use instead of `text`: all names if there are at most six. Otherwise the three most
/// similar names, followed by `all`, which says where the whole list is. Empty if there are no names.
pub fn choices<'a>(text: &str, names: impl IntoIterator<Item = &'a str>, all: &str) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return String::new();
    }
    if names.len() <= FEW {
        return format!("use one of {}", names.join(", "));
    }
    let number = names.len();
    // A name that contains the text, or is contained in it, comes first: `copy` is part of `filecopy`.
    let is_part = |name: &str| text.len() > 2 && (name.contains(text) || text.contains(name));
    let rank = |name: &str| likeness(text, name) + if is_part(name) { 1.0 } else { 0.0 };
    names.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    names.truncate(NEAREST);
    format!("the nearest of {number} are {}; {all}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 2] = ["debian:bookworm", "smooth-sin"];

    #[test]
    fn a_slip_is_mended_and_nonsense_is_not() {
        assert_eq!(
            nearest("debain:bookwrom", WORDS),
            Some("debian:bookworm".into())
        );
        assert_eq!(nearest("Smooth_sin", WORDS), Some("smooth-sin".into()));
        assert_eq!(nearest("xyz", WORDS), None);
    }

    #[test]
    fn a_name_of_ten_megabytes_is_like_none_and_is_not_measured() {
        // A comparison letter by letter would take more memory than the machine has.
        let long = "x".repeat(10 << 20);
        let all = [long.as_str(), "debian:sid"];
        assert_eq!(nearest(&long, WORDS), None);
        assert_eq!(slip(&"y".repeat(10 << 20), all), None);
        assert_eq!(nearest(&long, all).map(|name| name.len()), Some(long.len()));
        assert_eq!(
            choices(&long, WORDS, "all"),
            "use one of debian:bookworm, smooth-sin"
        );
    }

    #[test]
    fn only_another_name_within_two_letters_is_a_slip() {
        assert_eq!(slip("smoth-sin", WORDS), Some("smooth-sin".into()));
        assert_eq!(slip("smooth-sin", WORDS), None);
        assert_eq!(slip("smooth-cos-tan", WORDS), None);
    }

    #[test]
    fn without_a_near_name_a_short_list_is_given_whole() {
        assert_eq!(
            hint("smooth sine", WORDS.into_iter(), "all"),
            "did you mean \"smooth-sin\"?"
        );
        assert_eq!(
            hint("?", WORDS.into_iter(), "all"),
            "use one of debian:bookworm, smooth-sin"
        );
        assert_eq!(choices("?", [], "all"), "");
    }

    #[test]
    fn without_a_near_name_a_long_list_is_cut_to_the_three_nearest() {
        let long = [
            "alloc", "contswap", "fault", "filecopy", "hot-cold", "linear", "loop",
        ];
        assert_eq!(
            hint("copy", long.into_iter(), "`list` shows all"),
            "the nearest of 7 are filecopy, contswap, hot-cold; `list` shows all"
        );
        let all = hint("nosuch", long.into_iter(), "`list` shows all");
        assert!(
            all.starts_with("the nearest of 7 are contswap, hot-cold, "),
            "{all}"
        );
        assert_eq!(all.matches(", ").count(), 2, "{all}");
    }
}
