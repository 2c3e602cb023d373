//! Who else could put something in the place of a PROF_XXX directory.
//!
//! Everything in it is made by descriptor, never by its path a second time. What is left to others is the
//! path: where it leads when a capture begins, and what is found under it later. The rule, in which root and
//! we ourselves count as nobody else:
//!
//! - The directory that PROF_XXX is made in is refused if others than its owner may rename what is in it:
//!   everybody or a group may write there, and it has no sticky bit. A group that nobody else is in does not
//!   count: one whose number is 0 or that of the owner, as most systems give one to each user, and one that
//!   /etc/group and /etc/passwd know without any other member.
//! - If it belongs to somebody else, that user alone could do so. That is said and not refused: a container's
//!   root writes to directories of the host's users all the time.
//! - A link on the way is followed if the directory that it lies in is not refused either. Where everybody
//!   may make one, as in /tmp, it has to be ours, root's or that of the directory's owner.
//! - The directory that was opened has to be the one that the way led to by this rule: somebody may have turned
//!   a link elsewhere in between.
//!
//! Directories further up and access control lists are not looked at.

#![forbid(unsafe_code)]

use super::ProfDirError;
use super::files::Dir;
use super::members;
use crate::process;
use crate::process::fd::keep_above_standard;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const LINKS_MAX: u32 = 40;
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Who may rename what lies in a directory, besides root and us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renamers {
    Nobody,
    /// Its owner, a user of this number.
    Owner(u32),
    /// The members of the group of this number.
    Group(u32),
    Everybody,
}

/// Owner and permissions of a directory.
#[derive(Clone, Copy, Debug)]
struct Access {
    mode: u32,
    uid: u32,
    gid: u32,
    /// Nobody else is in its group.
    private: bool,
}

impl Access {
    fn new(mode: u32, uid: u32, gid: u32, us: u32) -> Access {
        let may_matter = mode & GROUP_WRITES != 0 && mode & STICKY == 0;
        Access {
            mode,
            uid,
            gid,
            private: gid == 0 || gid == uid || may_matter && members::are_only(gid, &[uid, us, 0]),
        }
    }

    fn of(found: &Metadata, us: u32) -> Access {
        Access::new(found.mode(), found.uid(), found.gid(), us)
    }

    fn of_stat(found: &Stat, us: u32) -> Access {
        Access::new(found.st_mode, found.st_uid, found.st_gid, us)
    }

    fn is_ours(&self, us: u32) -> bool {
        self.uid == us || self.uid == 0
    }

    /// Who may make files there, the owner left out.
    fn writers(&self) -> Renamers {
        if self.mode & OTHERS_WRITE != 0 {
            Renamers::Everybody
        } else if self.mode & GROUP_WRITES != 0 && !self.private {
            Renamers::Group(self.gid)
        } else {
            Renamers::Nobody
        }
    }

    fn renamers(&self, us: u32) -> Renamers {
        match self.writers() {
            shared @ (Renamers::Group(_) | Renamers::Everybody) if self.mode & STICKY == 0 => {
                shared
            }
            _ if !self.is_ours(us) => Renamers::Owner(self.uid),
            _ => Renamers::Nobody,
        }
    }

    /// Why nothing is to depend on a name in this directory.
    fn refusal(&self, us: u32) -> Option<String> {
        let who = match self.renamers(us) {
            Renamers::Nobody | Renamers::Owner(_) => return None,
            Renamers::Group(gid) => format!("the members of group {gid}"),
            Renamers::Everybody => "all users".to_owned(),
        };
        let mode = self.mode & 0o7777;
        Some(format!(
            "can be changed by {who} (mode {mode:04o}, not sticky), who could put something else in the \
             place of the capture"
        ))
    }
}

/// The directory in which a PROF_XXX is about to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent<'a> {
    /// Its absolute path.
    pub(super) path: &'a Path,
    /// What is dangerous is said only.
    pub(super) allow_shared: bool,
}

impl Parent<'_> {
    /// Looks at the links on the way; before anything is made. What is worth saying comes back.
    pub(super) fn check_links(&self) -> Result<Option<String>, ProfDirError> {
        match walk(self.path, process::effective_uid()) {
            Ok(_) => Ok(None),
            Err(Danger { path, why }) => self.danger(path, why),
        }
    }

    /// Looks at the directory itself, once it is open. What is worth saying comes back.
    pub(super) fn check(&self, dir: &Dir) -> Result<Option<String>, ProfDirError> {
        let us = process::effective_uid();
        // A file system that does not say is not worse than one without modes.
        let Ok(found) = dir.metadata() else {
            return Ok(None);
        };
        let access = Access::of(&found, us);
        if let Some(why) = access.refusal(us) {
            return self.danger(self.path.to_owned(), why);
        }
        // Once more, since links may have been turned elsewhere before it was opened. What cannot be walked
        // could not be opened either.
        match walk(self.path, us) {
            Ok(Some(place)) if place != (found.dev(), found.ino()) => {
                let why = "became another directory while it was opened";
                return self.danger(self.path.to_owned(), why.to_owned());
            }
            Ok(_) => {}
            Err(Danger { path, why }) if !self.allow_shared => return self.danger(path, why),
            Err(_) => {}
        }
        Ok(match access.renamers(us) {
            Renamers::Owner(uid) => Some(format!(
                "{} belongs to uid {uid}, who could put something else in the place of the capture",
                self.path.display()
            )),
            _ => None,
        })
    }

    fn danger(&self, path: PathBuf, why: String) -> Result<Option<String>, ProfDirError> {
        if self.allow_shared {
            return Ok(Some(format!("{} {why}", path.display())));
        }
        Err(ProfDirError::Shared { path, why })
    }
}

/// What somebody else could turn elsewhere, and why.
#[derive(Debug)]
struct Danger {
    path: PathBuf,
    why: String,
}

/// Device and inode.
type Identity = (u64, u64);

/// Goes the way to `path` as the kernel does, step by step from one open directory to the next, so that nothing
/// can be put in its place behind us. Where it leads; `None` where that cannot be looked at or is not there,
/// which is left to the open.
fn walk(path: &Path, us: u32) -> Result<Option<Identity>, Danger> {
    let parts = |path: &Path| -> Vec<OsString> {
        let named = |part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        };
        path.components().rev().filter_map(named).collect()
    };
    let root = || open_step(CWD, Path::new("/"));
    let mut rest = parts(path);
    let mut at = PathBuf::from("/");
    let Some(mut dir) = root() else {
        return Ok(None);
    };
    let mut links = 0;
    while let Some(part) = rest.pop() {
        let Some(next) = open_step(dir.fd.as_fd(), Path::new(&part)) else {
            return Ok(None);
        };
        if FileType::from_raw_mode(next.stat.st_mode) != FileType::Symlink {
            match part == ".." {
                true => drop(at.pop()),
                false => at.push(part),
            }
            dir = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Ok(None);
        }
        let within = Access::of_stat(&dir.stat, us);
        if let Some(why) = within.refusal(us) {
            return Err(Danger { path: at, why });
        }
        let owner = next.stat.st_uid;
        let trusted = owner == us || owner == 0 || owner == within.uid;
        if !trusted && within.writers() != Renamers::Nobody {
            let why =
                format!("is a link of uid {owner} in a directory where others may make links");
            let path = at.join(part);
            return Err(Danger { path, why });
        }
        let Ok(target) = rustix::fs::readlinkat(&next.fd, "", Vec::new()) else {
            return Ok(None);
        };
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            let Some(root) = root() else {
                return Ok(None);
            };
            (at, dir) = (PathBuf::from("/"), root);
        }
        rest.extend(parts(&target));
    }
    Ok(Some((dir.stat.st_dev, dir.stat.st_ino)))
}

/// A place on the way.
struct Step {
    fd: OwnedFd,
    stat: Stat,
}

/// What has that name in an open directory; a link itself, not what it points to.
fn open_step(dir: BorrowedFd<'_>, name: &Path) -> Option<Step> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
    let fd = keep_above_standard(fd).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    Some(Step { fd, stat })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    const ROOT: u32 = 0;
    const ME: u32 = 1000;
    const OTHER: u32 = 2000;

    #[test]
    fn the_rule_row_by_row() {
        use Renamers::{Everybody, Group, Nobody, Owner};
        // Mode, owner, group, who we are: who else may rename.
        let rows = [
            (0o755, ME, ME, ME, Nobody),
            (0o700, ME, 100, ME, Nobody),
            (0o755, ROOT, ROOT, ME, Nobody),
            // Where the umask is 002: a group of the user's own, and root's.
            (0o775, ME, ME, ME, Nobody),
            (0o2775, ME, ME, ME, Nobody),
            (0o775, ME, ROOT, ME, Nobody),
            (0o775, ROOT, ROOT, ME, Nobody),
            // Groups that have other members.
            (0o775, ME, 100, ME, Group(100)),
            (0o2770, OTHER, 100, ME, Group(100)),
            (0o775, ROOT, 100, ROOT, Group(100)),
            (0o1775, ME, 100, ME, Nobody),
            // Everybody.
            (0o777, ME, ME, ME, Everybody),
            (0o777, ROOT, ROOT, ROOT, Everybody),
            (0o757, ME, ME, ME, Everybody),
            (0o777, OTHER, 100, ROOT, Everybody),
            (0o1777, ROOT, ROOT, ME, Nobody),
            (0o1777, ROOT, ROOT, ROOT, Nobody),
            (0o1777, ME, ME, ME, Nobody),
            // Somebody else's.
            (0o755, OTHER, OTHER, ROOT, Owner(OTHER)),
            (0o775, OTHER, OTHER, ROOT, Owner(OTHER)),
            (0o1777, OTHER, OTHER, ROOT, Owner(OTHER)),
            (0o1777, OTHER, OTHER, ME, Owner(OTHER)),
        ];
        for (mode, uid, gid, us, expected) in rows {
            let access = Access {
                mode,
                uid,
                gid,
                private: gid == ROOT || gid == uid,
            };
            assert_eq!(access.renamers(us), expected, "{access:?} for {us}");
            let refused = matches!(expected, Group(_) | Everybody);
            assert_eq!(access.refusal(us).is_some(), refused, "{access:?}");
        }
    }

    fn directory(within: &Path, name: &str, mode: u32) -> PathBuf {
        let path = within.join(name);
        fs::create_dir(&path).expect("a directory");
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode");
        path
    }

    #[test]
    fn a_link_is_as_good_as_the_directory_that_it_lies_in() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let us = process::effective_uid();
        let good = directory(temp.path(), "good", 0o755);
        let open = directory(temp.path(), "open", 0o777);
        let sticky = directory(temp.path(), "sticky", 0o1777);
        for dir in [&good, &open, &sticky] {
            symlink(&good, dir.join("link")).expect("link");
        }
        symlink("../open/./link", good.join("around")).expect("link");
        symlink("itself", good.join("itself")).expect("link");
        let dangerous = |path: &Path| walk(path, us).err().map(|danger| danger.path);
        assert_eq!(dangerous(&good.join("link")), None);
        assert_eq!(dangerous(&good.join("link/missing/more")), None);
        assert_eq!(dangerous(&sticky.join("link")), None);
        assert_eq!(dangerous(&open.join("link")), Some(open.clone()));
        assert_eq!(dangerous(&open.join("link/below")), Some(open.clone()));
        assert_eq!(dangerous(&good.join("around")), Some(open.clone()));
        assert_eq!(dangerous(&open.join("../good/link")), None);
        assert_eq!(dangerous(&good.join("itself")), None, "the open says it");
    }

    #[test]
    fn a_link_of_somebody_else_counts_only_where_nobody_else_makes_links() {
        if process::effective_uid() != 0 {
            crate::skip::skipped(format_args!("only root gives files away"));
            return;
        }
        let temp = tempfile::tempdir().expect("temporary directory");
        let rows = [
            // Mode and owner of the directory, owner of the link: whether it is followed.
            (0o1777, ROOT, OTHER, false),
            (0o1777, ROOT, ROOT, true),
            (0o1777, ROOT, ME, true),
            (0o1777, OTHER, OTHER, true),
            (0o755, OTHER, OTHER, true),
            (0o755, ROOT, OTHER, true),
        ];
        for (number, (mode, owner, link_owner, followed)) in rows.into_iter().enumerate() {
            let dir = directory(temp.path(), &number.to_string(), mode);
            chown(&dir, Some(owner), Some(owner)).expect("given away");
            let link = dir.join("link");
            symlink(temp.path(), &link).expect("link");
            lchown(&link, Some(link_owner), Some(link_owner)).expect("given away");
            let expected = (!followed).then(|| link.clone());
            let found = walk(&link, ME).err().map(|danger| danger.path);
            assert_eq!(found, expected, "row {number}");
        }
    }

    #[test]
    fn the_way_leads_to_where_the_kernel_goes() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let us = process::effective_uid();
        let deep = temp.path().join("a/b");
        fs::create_dir_all(&deep).expect("directories");
        symlink("a/b", temp.path().join("down")).expect("link");
        symlink(temp.path(), deep.join("up")).expect("link");
        for path in [
            "",
            "a/b",
            "down",
            "down/..",
            "down/up",
            "a/../down/up/a",
            ".",
        ] {
            let path = temp.path().join(path);
            let found = fs::metadata(&path).expect("there");
            let expected = Some((found.dev(), found.ino()));
            assert_eq!(walk(&path, us).expect("safe"), expected, "{path:?}");
        }
        let missing = walk(&temp.path().join("missing/x"), us);
        assert_eq!(missing.expect("safe"), None);
    }

    #[test]
    fn a_directory_that_was_opened_by_another_way_is_refused() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (named, other) = (temp.path().join("named"), temp.path().join("other"));
        fs::create_dir(&named).expect("a directory");
        fs::create_dir(&other).expect("a directory");
        let mut parent = Parent {
            path: &named,
            allow_shared: false,
        };
        // As it is when somebody exchanges the two between the look and the open.
        let opened = Dir::open(&other).expect("opens");
        let error = parent.check(&opened).expect_err("another");
        assert!(error.to_string().contains("became another"), "{error}");
        parent.allow_shared = true;
        let said = parent.check(&opened).expect("taken");
        assert!(said.is_some_and(|said| said.contains("became another")));
        let opened = Dir::open(&named).expect("opens");
        assert_eq!(parent.check(&opened).expect("the same"), None);
    }
}
