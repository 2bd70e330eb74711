//! Names with their meanings in two columns, under headings: the list of commands in help.

/// Renders names and their meanings as a list with headings. Each entry of `groups` is a heading and its names, which
/// are separated by spaces. Lines are wrapped at `width` columns.
pub fn under_headings(
    groups: &[(&str, &str)],
    meaning: impl Fn(&str) -> String,
    width: usize,
) -> String {
    let names = groups.iter().flat_map(|(_, names)| names.split(' '));
    let first = names.map(str::len).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for (heading, names) in groups {
        put!(out, "{heading}:\n");
        for name in names.split(' ') {
            out += &columns(&format!("  {name}"), &meaning(name), first, width);
        }
        out.push('\n');
    }
    out
}

/// Renders a name and its meaning in two columns. The name column has the width `first`; the meaning is wrapped so that
/// lines have at most `width` columns, if 20 remain for it.
fn columns(name: &str, meaning: &str, first: usize, width: usize) -> String {
    let room = width.saturating_sub(first + 2).max(20);
    let mut out = String::new();
    let lines = crate::draw::clean::wrap(meaning, room, false);
    for (nth, line) in lines.iter().enumerate() {
        let head = if nth == 0 { name } else { "" };
        put!(out, "{head:first$}  {line}\n");
    }
    out
}
