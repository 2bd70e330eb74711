//! The commits of a git tree between two revisions, for a bisection.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::SourceError;
use crate::git::{Revision, ask};
use crate::recipe::{Recipe, SourceRef};

/// A commit of a git tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full hash of the commit.
    pub id: String,
    /// First line of the commit's message.
    pub subject: String,
}

/// The commits between a good and a bad one, including those of merged branches. Parents come before their children:
/// the good commit is first, the bad one last.
#[derive(Clone, Debug)]
pub struct Commits {
    folder: PathBuf,
    /// The commits, parents before children.
    pub commits: Vec<Commit>,
    /// For each commit, the indices in `commits` of its parents. Parents that are not in `commits` are left out.
    pub parents: Vec<Vec<usize>>,
}

impl Commits {
    /// Reads the commits from `good` to `bad` of the git tree in `folder`, without changing the tree. Fails if `good`
    /// is not an ancestor of `bad`, or is the same commit.
    pub fn between(folder: &Path, good: &str, bad: &str) -> Result<Self, SourceError> {
        let [from, to] = [
            Revision::find(folder, Some(good), &mut |_| {})?.commit,
            Revision::find(folder, Some(bad), &mut |_| {})?.commit,
        ];
        let common = ask(folder, &["merge-base", &from, &to], "compare the revisions");
        let common = common.unwrap_or_default();
        if common != from || from == to {
            return Err(SourceError::NoAncestor {
                good: good.to_owned(),
                bad: bad.to_owned(),
                common: common.get(..12).unwrap_or("none").to_owned(),
                path: folder.to_owned(),
            });
        }
        let until = format!("^{from}");
        let format = "--format=tformat:%H%x00%P%x00%s";
        let first = ask(folder, &["log", "-1", format, &from], "read the history")?;
        let rest = [
            "log",
            "--topo-order",
            "--reverse",
            format,
            &to,
            until.as_str(),
        ];
        let rest = ask(folder, &rest, "read the history")?;
        let mut places: HashMap<String, usize> = HashMap::new();
        let (mut commits, mut parents) = (Vec::new(), Vec::new());
        for line in first.lines().chain(rest.lines()) {
            let mut parts = line.splitn(3, '\0');
            let (Some(id), Some(of), Some(subject)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let of = of.split(' ').filter_map(|id| places.get(id).copied());
            parents.push(of.collect());
            places.insert(id.to_owned(), commits.len());
            commits.push(Commit {
                id: id.to_owned(),
                subject: subject.to_owned(),
            });
        }
        Ok(Self {
            folder: folder.to_owned(),
            commits,
            parents,
        })
    }

    /// Returns the recipe `like` with the commit at index `place` as its source.
    pub fn recipe(&self, place: usize, like: &Recipe) -> Recipe {
        Recipe {
            source: SourceRef::Git {
                folder: self.folder.clone(),
                revision: Some(self.commits[place].id.clone()),
            },
            ..like.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::git::git;

    #[test]
    fn merges_bring_their_commits_and_parents_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let commit = |subject: &str| {
            let words = ["commit", "-q", "--allow-empty", "-m", subject];
            git(path, &words);
        };
        git(path, &["init", "-q", "-b", "main"]);
        for subject in ["zero", "good", "one"] {
            commit(subject);
        }
        git(path, &["tag", "good", "HEAD~1"]);
        git(path, &["checkout", "-q", "-b", "side", "good~1"]);
        commit("side: a [tricky] -- subject");
        git(path, &["checkout", "-q", "main"]);
        git(path, &["merge", "-q", "-m", "merge", "side"]);
        commit("bad");
        let all = Commits::between(path, "good", "HEAD").unwrap();
        let subjects: Vec<&str> = all.commits.iter().map(|c| c.subject.as_str()).collect();
        assert_eq!(subjects.len(), 5);
        assert_eq!(
            (subjects[0], subjects[3], subjects[4]),
            ("good", "merge", "bad")
        );
        assert!(subjects.contains(&"side: a [tricky] -- subject"));
        assert_eq!(all.parents[3].len(), 2);
        assert_eq!(all.parents[4], [3]);
        let side = subjects.iter().position(|s| s.starts_with("side")).unwrap();
        assert!(
            all.parents[side].is_empty(),
            "it branched off before the good one"
        );
        for (good, bad) in [("HEAD", "good"), ("side", "good"), ("good", "good")] {
            let error = Commits::between(path, good, bad).unwrap_err();
            assert!(matches!(error, SourceError::NoAncestor { .. }), "{error}");
        }
        let error = Commits::between(path, "--upload-pack=x", "HEAD").unwrap_err();
        assert!(matches!(error, SourceError::Git { .. }), "{error}");
    }
}
