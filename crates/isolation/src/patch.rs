//! A patch in the form of git, as far as its headers tell.

use std::path::{Component, Path};

/// Facts about a patch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The number of files that it changes.
    pub(crate) files: u32,
    /// Links in it that lead out of the folder, each with its target.
    pub(crate) links_out: Vec<String>,
}

/// Reads lines of a patch, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Summing {
    pub(crate) summary: Summary,
    /// The path of the file, as its header has it.
    path: String,
    is_link: bool,
    in_hunk: bool,
}

impl Summing {
    /// Takes the next line, without its end.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            self.summary.files += 1;
            let names = String::from_utf8_lossy(names);
            let path = names.rsplit_once(" b/").map_or(&*names, |(_, path)| path);
            self.path = path.trim_end_matches('"').to_owned();
            (self.is_link, self.in_hunk) = (false, false);
        } else if line.starts_with(b"@@ ") {
            self.in_hunk = true;
        } else if !self.in_hunk {
            self.is_link |= line == b"new file mode 120000"
                || line == b"new mode 120000"
                || line.starts_with(b"index ") && line.ends_with(b" 120000");
        } else if self.is_link
            && let Some(target) = line.strip_prefix(b"+")
        {
            let target = String::from_utf8_lossy(target);
            if leads_out(Path::new(&self.path), Path::new(&*target)) {
                self.summary.links_out.push(format!("{} to {target}", self.path));
            }
        }
    }
}

/// True if a link at this path leads out of the folder to which the path belongs.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count() as i64 - 1;
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_found() {
        let check = |path: &str, target: &str, expected| {
            assert_eq!(leads_out(Path::new(path), Path::new(target)), expected, "{path}, {target}");
        };
        check("a", "/etc/passwd", true);
        check("a", "../b", true);
        check("d/a", "../b", false);
        check("d/a", "../../b", true);
        check("d/a", "../x/../../b", true);
        check("a", "./b", false);
    }

    #[test]
    fn headers_are_told_from_content() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\
             +diff --git a/y b/y\ndiff --git a/l b/l\nnew file mode 120000\nindex 0..1\n--- /dev/null\n\
             +++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n";
        let mut summing = Summing::default();
        patch.lines().for_each(|line| summing.line(line.as_bytes()));
        let links_out = vec!["l to /etc/passwd".to_owned()];
        assert_eq!(summing.summary, Summary { files: 2, links_out });
    }
}
