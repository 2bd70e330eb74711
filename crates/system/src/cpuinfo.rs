//! `/proc/cpuinfo`: the processor's model.

use std::fs;

/// Returns the model name of the first processor, such as `Intel(R) Xeon(R) …`; empty if the kernel does not tell it.
pub fn model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&text, "model name").to_owned()
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: Xeon: fast\nflags\t\t: fpu constant_tsc\n";
        assert_eq!(field(text, "model name"), "Xeon: fast");
        assert_eq!(field(text, "flags"), "fpu constant_tsc");
        assert_eq!(field(text, "name"), "");
    }
}
