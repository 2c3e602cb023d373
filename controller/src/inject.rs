//! How a launched program gets the agent: the loader's two variables, with what they hold already.

use crate::library::{self, DROP_IN, LIBRARY, LibraryError, is_same_file};
use crate::preload::{self, PRELOAD};
use msprof_agent_core::names::LIBRARY_PATH;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// By which ways the agent gets into a launched program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inject {
    /// By both, as far as there is a libprofapi.so of ours.
    #[default]
    Both,
    /// LD_PRELOAD alone.
    Preload,
    /// In place of libprofapi.so alone, by LD_LIBRARY_PATH.
    Libprofapi,
    /// By none: the program brings an agent along, or the vendor's library is one.
    None,
}

impl Inject {
    /// The words of `--inject`.
    pub const WORDS: &[&str] = &["both", "preload", "libprofapi", "none"];

    /// The way that one of [`Inject::WORDS`] names.
    pub fn of_word(word: &str) -> Option<Inject> {
        match word {
            "both" => Some(Inject::Both),
            "preload" => Some(Inject::Preload),
            "libprofapi" => Some(Inject::Libprofapi),
            "none" => Some(Inject::None),
            _ => None,
        }
    }
}

/// Why a program cannot get the agent.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// There is no library.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The loader cannot take the path.
    #[error("the path of the agent library, {}, holds {what}, which {variable} cannot take; move it", .path.display())]
    Path {
        /// The library or its directory.
        path: PathBuf,
        /// What is in the way.
        what: &'static str,
        /// Where the path would have to go.
        variable: &'static str,
    },
    /// It is not there under the stock library's name.
    #[error("--inject=libprofapi: there is no {DROP_IN} that is a link to {} in {}; make it, or use --inject=preload", .library.display(), library::list(.places))]
    NoDropIn {
        /// The library.
        library: PathBuf,
        /// Where the link was looked for.
        places: Vec<PathBuf>,
    },
    /// Another agent would get into the program as well.
    #[error("{PRELOAD} holds another agent library, {}: two in one process would be in each other's way; take it out, or name it with --agent-lib", .0.display())]
    OtherAgent(PathBuf),
}

/// What the loader is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// The library, whichever way it gets there; `None` when nothing is injected.
    library: Option<PathBuf>,
    preload: bool,
    /// A directory with the same file under the stock library's name.
    drop_in: Option<PathBuf>,
}

impl Injection {
    /// Looks for what the ways need. `named` is the library that the user wants.
    pub fn find(way: Inject, named: Option<&Path>) -> Result<Injection, InjectError> {
        if way == Inject::None {
            return Ok(Injection::default());
        }
        let library = library::find(named)?;
        let preload = way != Inject::Libprofapi;
        if preload {
            let bytes = library.as_os_str().as_bytes();
            if bytes.iter().any(|b| b.is_ascii_whitespace() || *b == b':') {
                return Err(InjectError::Path {
                    path: library,
                    what: "a blank or a colon",
                    variable: PRELOAD,
                });
            }
        }
        let drop_in = match way {
            Inject::Preload | Inject::None => None,
            Inject::Both | Inject::Libprofapi => library::drop_in(&library),
        };
        match &drop_in {
            Some(dir) if dir.as_os_str().as_bytes().iter().any(is_path_separator) => {
                return Err(InjectError::Path {
                    path: dir.clone(),
                    what: "a colon or a semicolon",
                    variable: LIBRARY_PATH,
                });
            }
            None if way == Inject::Libprofapi => {
                return Err(InjectError::NoDropIn {
                    places: library::drop_in_places(&library).to_vec(),
                    library,
                });
            }
            _ => {}
        }
        Ok(Injection {
            library: Some(library),
            preload,
            drop_in,
        })
    }

    /// What the user should know of it before the program is started: that only a part of what he has asked for is to
    /// be had, and that the library is perhaps none of ours.
    pub fn remarks(&self, way: Inject) -> Vec<String> {
        let Some(library) = &self.library else {
            return Vec::new();
        };
        let only_preloaded = (way == Inject::Both && self.drop_in.is_none()).then(|| {
            format!(
                "the agent is only preloaded, since there is no {DROP_IN} that is a link to it in {}: components that open \
                 that library by themselves are not seen",
                library::list(&library::drop_in_places(library))
            )
        });
        let unknown = library::unknown_version(library);
        [only_preloaded, unknown].into_iter().flatten().collect()
    }

    /// The variables to be set. `current` looks a variable up as the program would have it.
    pub fn variables(
        &self,
        current: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, InjectError> {
        let Some(library) = &self.library else {
            return Ok(Vec::new());
        };
        let preloaded = current(PRELOAD).unwrap_or_default();
        let others = preload::files(&preloaded);
        if let Some(other) = others.iter().find(|file| is_other_agent(file, library)) {
            return Err(InjectError::OtherAgent(other.clone()));
        }
        let mut variables = Vec::new();
        // Where the user has put it already, it has its order among the others by his will.
        if self.preload && !others.iter().any(|file| is_same_file(file, library)) {
            variables.push((PRELOAD, in_front(library, &preloaded)));
        }
        if let Some(dir) = &self.drop_in {
            let before = current(LIBRARY_PATH).unwrap_or_default();
            variables.push((LIBRARY_PATH, searched_first(dir, &before)));
        }
        Ok(variables)
    }
}

fn is_path_separator(byte: &u8) -> bool {
    matches!(byte, b':' | b';')
}

/// By its name, or by what it tells of itself under another one.
fn is_other_agent(file: &Path, library: &Path) -> bool {
    let is_agent = || {
        file.file_name() == Some(OsStr::new(LIBRARY))
            || matches!(library::version_of(file), Ok(Some(_)))
    };
    file.is_file() && !is_same_file(file, library) && is_agent()
}

/// `value:rest`, or `value` alone when there is no rest: an empty entry would be one more, and in LD_LIBRARY_PATH
/// the working directory.
fn in_front(value: &Path, rest: &OsStr) -> OsString {
    let mut joined = value.as_os_str().as_bytes().to_vec();
    if !rest.is_empty() {
        joined.push(b':');
        joined.extend_from_slice(rest.as_bytes());
    }
    OsString::from_vec(joined)
}

/// A search path with `dir` before all others, and once. The others stay as they are, separators included.
fn searched_first(dir: &Path, path: &OsStr) -> OsString {
    if path.is_empty() {
        return dir.into();
    }
    let mut rest = path.as_bytes();
    let mut joined = dir.as_os_str().as_bytes().to_vec();
    // Before the first that stays, and before each of the others its own.
    let mut separator = b':';
    loop {
        let end = rest.iter().position(is_path_separator);
        let entry = &rest[..end.unwrap_or(rest.len())];
        if !is_same_file(Path::new(OsStr::from_bytes(entry)), dir) {
            joined.push(separator);
            joined.extend_from_slice(entry);
        }
        let Some(end) = end else {
            return OsString::from_vec(joined);
        };
        let is_first = joined.len() == dir.as_os_str().len();
        separator = if is_first { b':' } else { rest[end] };
        rest = &rest[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A library with its links, as it is installed.
    struct Installed {
        dir: tempfile::TempDir,
    }

    impl Installed {
        fn new() -> Installed {
            let dir = tempfile::tempdir().expect("temporary directory");
            let drop_in = dir.path().join("cann");
            std::fs::create_dir(&drop_in).expect("made");
            std::fs::write(dir.path().join(LIBRARY), "x").expect("written");
            symlink(format!("../{LIBRARY}"), drop_in.join(DROP_IN)).expect("linked");
            Installed { dir }
        }

        fn library(&self) -> String {
            self.path(LIBRARY)
        }

        fn drop_in(&self) -> String {
            self.path("cann")
        }

        fn path(&self, name: &str) -> String {
            let path = self.dir.path().join(name);
            path.to_str().expect("UTF-8").to_owned()
        }

        fn find(&self, way: Inject) -> Injection {
            Injection::find(way, Some(Path::new(&self.library()))).expect("found")
        }

        /// LD_PRELOAD and LD_LIBRARY_PATH as they are set, by what they are.
        fn set(&self, way: Inject, preload: &str, path: &str) -> [Option<String>; 2] {
            let variables = self.find(way).variables(|name| match name {
                PRELOAD => Some(preload.into()),
                _ => Some(path.into()),
            });
            let variables = variables.expect("can be set");
            [PRELOAD, LIBRARY_PATH].map(|name| {
                let mut found = variables.iter().filter(|(key, _)| *key == name);
                let value = found
                    .next()
                    .map(|(_, value)| value.to_str().expect("UTF-8"));
                assert_eq!(found.next(), None, "{name} is set once");
                value.map(str::to_owned)
            })
        }
    }

    #[test]
    fn each_way_sets_its_own_variables_alone() {
        let agent = Installed::new();
        let (library, drop_in) = (Some(agent.library()), Some(agent.drop_in()));
        let expected = [
            (Inject::Both, [library.clone(), drop_in.clone()]),
            (Inject::Preload, [library, None]),
            (Inject::Libprofapi, [None, drop_in]),
            (Inject::None, [None, None]),
        ];
        for (way, variables) in expected {
            assert_eq!(agent.set(way, "", ""), variables, "{way:?}");
            let none = agent.find(way).variables(|_| None).expect("can be set");
            let set = variables.iter().flatten().count();
            assert_eq!(none.len(), set, "{way:?}");
        }
    }

    #[test]
    fn what_the_variables_hold_is_kept_behind_ours() {
        let agent = Installed::new();
        let (library, drop_in) = (agent.library(), agent.drop_in());
        let set = agent.set(Inject::Both, "/other.so /b.so", "/a:/b");
        assert_eq!(set[0], Some(format!("{library}:/other.so /b.so")));
        assert_eq!(set[1], Some(format!("{drop_in}:/a:/b")));
        // The user's empty entries are the working directory; they stay, and none is added.
        for (before, after) in [
            (":/a", "::/a"),
            ("/a:", ":/a:"),
            ("/a::/b", ":/a::/b"),
            (":", "::"),
        ] {
            let set = agent.set(Inject::Both, "", before);
            assert_eq!(set[1], Some(format!("{drop_in}{after}")), "{before}");
        }
    }

    #[test]
    fn what_is_there_already_is_not_put_there_twice() {
        let agent = Installed::new();
        let (library, drop_in) = (agent.library(), agent.drop_in());
        symlink(&drop_in, agent.path("link")).expect("linked");
        let link = agent.path("link");
        // A preload keeps its place: the user may want another one first.
        for preload in [
            library.clone(),
            format!("/asan.so:{library}"),
            format!("/asan.so {drop_in}/{DROP_IN}"),
        ] {
            assert_eq!(agent.set(Inject::Both, &preload, "")[0], None, "{preload}");
        }
        // Behind the vendor's directory it would not be found.
        for (path, others) in [
            (format!("{drop_in}:/a:/b"), "/a:/b"),
            (format!("/a:{drop_in}:/b"), "/a:/b"),
            (format!("/a;{link}/;/b:{drop_in}"), "/a;/b"),
            (format!("{link}:{drop_in};/a;;/b"), "/a;;/b"),
        ] {
            let set = agent.set(Inject::Both, "", &path);
            assert_eq!(set[1], Some(format!("{drop_in}:{others}")), "{path}");
        }
        let set = agent.set(Inject::Both, "", &format!(":{drop_in}"));
        assert_eq!(set[1], Some(format!("{drop_in}:")), "the empty one stays");
    }

    #[test]
    fn a_second_agent_is_refused_unless_nothing_is_injected() {
        let (agent, other) = (Installed::new(), Installed::new());
        let preload = |_: &str| Some(OsString::from(format!("/a.so:{}", other.library())));
        for way in [Inject::Both, Inject::Preload, Inject::Libprofapi] {
            let error = agent.find(way).variables(preload).expect_err("refused");
            assert!(error.to_string().contains(&other.library()), "{error}");
        }
        assert!(agent.find(Inject::None).variables(preload).is_ok());
    }

    #[test]
    fn a_path_that_the_loader_cannot_take_is_refused_by_the_way_that_needs_it() {
        let agent = Installed::new();
        for (name, refused) in [
            ("a b", &[Inject::Both, Inject::Preload][..]),
            ("a:b", &[Inject::Both, Inject::Preload, Inject::Libprofapi]),
            ("a;b", &[Inject::Both, Inject::Libprofapi]),
        ] {
            let dir = agent.dir.path().join(name);
            std::fs::create_dir_all(dir.join("cann")).expect("made");
            std::fs::copy(agent.library(), dir.join(LIBRARY)).expect("copied");
            symlink(format!("../{LIBRARY}"), dir.join("cann").join(DROP_IN)).expect("linked");
            for way in [
                Inject::Both,
                Inject::Preload,
                Inject::Libprofapi,
                Inject::None,
            ] {
                let found = Injection::find(way, Some(&dir.join(LIBRARY)));
                let is_refused = matches!(found, Err(InjectError::Path { .. }));
                assert_eq!(
                    is_refused,
                    refused.contains(&way),
                    "{name} {way:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn without_a_libprofapi_the_other_way_remains() {
        let agent = Installed::new();
        std::fs::remove_dir_all(agent.drop_in()).expect("removed");
        assert_eq!(
            agent.set(Inject::Both, "", "/a"),
            [Some(agent.library()), None]
        );
        let error = Injection::find(Inject::Libprofapi, Some(Path::new(&agent.library())));
        let error = error.expect_err("refused").to_string();
        assert!(
            error.contains(&agent.drop_in()) && error.contains("--inject=preload"),
            "{error}"
        );
    }
}
