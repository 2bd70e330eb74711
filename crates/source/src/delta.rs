//! Finds the lines that differ between two versions of a file. Algorithm: E. Myers, An O(ND) Difference Algorithm and
//! Its Variations, Algorithmica 1 (1986), figure 2.

/// Maximum number of added and removed lines that are found one by one. A file with more changes is treated as changed
/// from its first to its last difference.
const MAX_DIFFERENCES: usize = 4000;

/// Lines that differ between two versions of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Numbers, in the new version, of the lines that are new or changed, from 1, in ascending order.
    pub added: Vec<u32>,
    /// For each place where lines were only removed: the number, in the new version, of the line that now follows, from
    /// 1.
    pub removed_before: Vec<u32>,
}

/// Returns the lines that differ between two versions of a file.
pub fn delta(old: &[u8], new: &[u8]) -> Delta {
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev());
    let end = end.take_while(|(a, b)| a == b).count().min(rest);
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let same = common(old, new).unwrap_or_default();
    let mut delta = Delta::default();
    let number = |at: usize| u32::try_from(start + at + 1).unwrap_or(u32::MAX);
    let (mut a, mut b) = (0, 0);
    for (x, y) in same.into_iter().chain([(old.len(), new.len())]) {
        if y > b {
            delta.added.extend((b..y).map(number));
        } else if x > a {
            delta.removed_before.push(number(y));
        }
        (a, b) = (x + 1, y + 1);
    }
    delta
}

/// Pairs of equal lines of a longest common subsequence: index in `a` and in `b`. `None` if the versions differ in more
/// than [`MAX_DIFFERENCES`] lines.
#[expect(
    clippy::many_single_char_names,
    reason = "the names of the paper: Myers, An O(ND) Difference Algorithm, 1986"
)]
fn common(a: &[&[u8]], b: &[&[u8]]) -> Option<Vec<(usize, usize)>> {
    let (n, m) = (a.len().cast_signed(), b.len().cast_signed());
    let most = MAX_DIFFERENCES.min(a.len() + b.len());
    let middle = most + 1;
    let at = |k: isize| middle.saturating_add_signed(k);
    let mut ends = vec![0_isize; 2 * most + 3];
    let mut history: Vec<Vec<isize>> = Vec::new();
    let mut found = None;
    'search: for d in 0..=most.cast_signed() {
        history.push(ends[at(-d - 1).min(middle)..=at(d + 1)].to_vec());
        for k in (-d..=d).step_by(2) {
            let down = k == -d || k != d && ends[at(k - 1)] < ends[at(k + 1)];
            let mut x = if down {
                ends[at(k + 1)]
            } else {
                ends[at(k - 1)] + 1
            };
            while x < n
                && x - k < m
                && x - k >= 0
                && a[x.cast_unsigned()] == b[(x - k).cast_unsigned()]
            {
                x += 1;
            }
            ends[at(k)] = x;
            if x >= n && x - k >= m {
                found = Some(d);
                break 'search;
            }
        }
    }
    let (mut x, mut y) = (n, m);
    let mut pairs = Vec::new();
    for d in (0..=found?).rev() {
        let before = &history[d.cast_unsigned()];
        let end = |k: isize| before[(k + d + 1).cast_unsigned()];
        let k = x - y;
        let down = k == -d || k != d && end(k - 1) < end(k + 1);
        let from = if down { k + 1 } else { k - 1 };
        let (px, py) = if d == 0 {
            (0, 0)
        } else {
            (end(from), end(from) - from)
        };
        while x > px && y > py {
            (x, y) = (x - 1, y - 1);
            pairs.push((x.cast_unsigned(), y.cast_unsigned()));
        }
        (x, y) = (px, py);
    }
    pairs.reverse();
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> (Vec<u32>, Vec<u32>) {
        let lines = |text: &str| {
            text.split(' ')
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        let Delta {
            added,
            removed_before,
        } = delta(lines(old).as_bytes(), lines(new).as_bytes());
        (added, removed_before)
    }

    #[test]
    fn added_changed_and_removed_lines_are_told_apart() {
        assert_eq!(of("a b c", "a b c"), (vec![], vec![]));
        assert_eq!(of("a b c", "a x b c"), (vec![2], vec![]));
        assert_eq!(of("a b c d", "a x y d"), (vec![2, 3], vec![]));
        assert_eq!(of("a b c d", "a d"), (vec![], vec![2]));
        assert_eq!(
            of("a b c d e f g", "a c d x e g h"),
            (vec![4, 7], vec![2, 6])
        );
        assert_eq!(of("a", "x y"), (vec![1, 2], vec![]));
        assert_eq!(delta(b"", b"a\nb\n").added, [1, 2]);
        assert_eq!(delta(b"a\n", b"").removed_before, [1]);
    }

    #[test]
    fn equal_lines_that_moved_apart_are_matched_in_order() {
        let old: Vec<String> = (0..300).map(|at| format!("l{}", at % 7)).collect();
        let mut new = old.clone();
        new.remove(250);
        new.insert(100, "new".to_owned());
        new.insert(20, "new".to_owned());
        let (added, removed) = of(&old.join(" "), &new.join(" "));
        assert_eq!(added, [21, 102]);
        assert_eq!(removed.len(), 1);
    }
}
