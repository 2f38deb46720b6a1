//! Which program makes results, and what of it a run depends on.
//!
//! What is kept of earlier runs is used again as long as this program would make the same. So a run is keyed
//! by hashes of the code that decides it: of the sources of everything but the policies, and of the sources of
//! each policy that it names, and of the contents of the files that these are made of. They depend neither on
//! the commit nor on machine or profile. A policy of a registry of one's own is in no such hash: it stands for
//! the whole executable, which any edit changes. So does everything where nothing is known of sources.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use quipu_policy::registry::{Part, PolicySpec, Registry};
use quipu_record::Provenance;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is said of what is not known.
const UNKNOWN: &str = "unknown";

/// What a program is built from, as its build script knows it.
#[derive(Clone, Copy, Debug)]
pub struct BuiltFrom {
    /// The commit of this repository, with `-dirty` if the tree differed from it; or `unknown`.
    pub commit: &'static str,
    /// The profile, such as `dist, opt-level 3, thin LTO`.
    pub profile: &'static str,
    /// Hash of the sources of everything that decides results but the single policies; `None` if the
    /// versions of what these use are not known.
    pub sources: Option<u128>,
    /// Layer and name of each built-in policy, with the hash of its sources.
    pub policies: &'static [(&'static str, &'static str, u128)],
}

/// The program that makes results. By default nothing is known of it but the executable that is running.
#[derive(Clone, Debug)]
pub struct Program {
    built_from: BuiltFrom,
    executable: Option<u128>,
}

/// The executable that is running cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the executable that is running, by which results are known: {0}")]
pub struct ProgramError(#[from] io::Error);

impl Default for Program {
    fn default() -> Self {
        let built_from =
            BuiltFrom { commit: UNKNOWN, profile: UNKNOWN, sources: None, policies: &[] };
        static EXECUTABLE: OnceLock<Option<u128>> = OnceLock::new();
        Program { built_from, executable: *EXECUTABLE.get_or_init(|| executable().ok()) }
    }
}

impl Program {
    /// The program that is running, which offers the policies of `registry`. Reads its executable if it has
    /// policies of its own, or if nothing is known of its sources.
    ///
    /// # Errors
    /// If the executable is needed and cannot be read.
    pub fn new(built_from: BuiltFrom, registry: &Registry) -> Result<Program, ProgramError> {
        let is_own = |policy| !registry.is_builtin(policy);
        let needed = built_from.sources.is_none() || registry.iter().any(is_own);
        let executable = if needed { Some(executable()?) } else { None };
        Ok(Program { built_from, executable })
    }

    /// The same with another hash of its executable.
    #[must_use]
    pub fn with_executable(self, executable: u128) -> Program {
        Program { executable: Some(executable), ..self }
    }

    /// What runs with the policies of `specs` depend on of the program: runs with the same text and the same
    /// scenario give the same. `None` if the executable decides and cannot be read.
    pub fn code_of<'s>(&self, specs: impl IntoIterator<Item = &'s PolicySpec>) -> Option<String> {
        let mut text = format!("{:032x}", self.frame()?);
        for part in specs.into_iter().flat_map(PolicySpec::parts) {
            text.push_str(&format!(" {:032x}", self.code_of_part(part)?));
            for file in part.values().files() {
                text.push_str(&format!(" {:032x}", xxh3_128(file.bytes())));
            }
        }
        Some(text)
    }

    /// The hash of everything but single policies; where they cannot be told apart, of everything.
    pub fn frame(&self) -> Option<u128> {
        self.built_from.sources.or(self.executable)
    }

    fn code_of_part(&self, part: &Part) -> Option<u128> {
        let BuiltFrom { sources, policies, .. } = self.built_from;
        if !part.is_builtin() || sources.is_none() {
            return self.executable;
        }
        let layer = part.entry().layer.name();
        let known = policies.iter().find(|(of, name, _)| (*of, *name) == (layer, part.name()));
        // Of one that is not told apart, any other may be a part.
        known.map(|(.., hash)| *hash).or_else(|| self.sources())
    }

    /// The hash of all sources.
    fn sources(&self) -> Option<u128> {
        let mut hash = Xxh3::new();
        hash.update(&self.built_from.sources?.to_le_bytes());
        for (.., policy) in self.built_from.policies {
            hash.update(&policy.to_le_bytes());
        }
        Some(hash.digest128())
    }

    /// What files say of it that hold runs with the policies of `specs`.
    pub fn provenance<'s>(&self, specs: impl IntoIterator<Item = &'s PolicySpec>) -> Provenance {
        let is_builtin = specs.into_iter().flat_map(PolicySpec::parts).all(Part::is_builtin);
        let program = match (self.sources(), self.executable) {
            (Some(sources), _) if is_builtin => format!("sources:{sources:032x}"),
            (_, Some(executable)) => format!("executable:{executable:032x}"),
            _ => UNKNOWN.to_owned(),
        };
        let BuiltFrom { commit, profile, .. } = self.built_from;
        let (version, commit) = (VERSION.to_owned(), commit.to_owned());
        Provenance { version, commit, program, profile: profile.to_owned() }
    }

    /// What is to be known of it, in a line for each.
    pub fn describe(&self) -> String {
        let Provenance { version, commit, program, profile } = self.provenance([]);
        format!("{version}\ncommit: {commit}\nprogram: {program}\nprofile: {profile}")
    }
}

/// The hash (XXH3, 128 bits) of the executable that is running.
fn executable() -> io::Result<u128> {
    // On Linux the running one itself, though another may have taken its name.
    let mut file = match File::open("/proc/self/exe") {
        Ok(file) => file,
        Err(_) => File::open(std::env::current_exe()?)?,
    };
    let mut hash = Xxh3::new();
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(hash.digest128()),
            length => hash.update(&bytes[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_policy::registry::{Layer, Param};

    const BUILT_FROM: BuiltFrom = BuiltFrom {
        commit: "c-dirty",
        profile: "edit, opt-level 3, no LTO",
        sources: Some(1),
        policies: &POLICIES,
    };
    const POLICIES: [(&str, &str, u128); 5] = [
        ("ack", "own", 1),
        ("congestion", "newreno", 2),
        ("path", "ecf", 3),
        ("path", "minrtt", 4),
        ("stream", "rr", 5),
    ];

    fn own() -> Registry {
        let mut registry = Registry::builtin();
        let like = registry.get(Layer::Path, "minrtt").unwrap().clone();
        registry.add(quipu_policy::Entry { name: "mine", ..like }).unwrap();
        registry
    }

    fn code(program: &Program, path: &str) -> String {
        let spec = PolicySpec::choose(&own(), [(Layer::Path, path)]).unwrap();
        program.code_of([&spec]).unwrap()
    }

    #[test]
    fn an_edited_policy_is_another_program_to_the_runs_that_name_it() {
        let before = Program::new(BUILT_FROM, &Registry::builtin()).unwrap();
        const EDITED: [(&str, &str, u128); 5] =
            [POLICIES[0], POLICIES[1], ("path", "ecf", 9), POLICIES[3], POLICIES[4]];
        let after = Program::new(BuiltFrom { policies: &EDITED, ..BUILT_FROM }, &own()).unwrap();
        assert_eq!(code(&before, "minrtt"), code(&after, "minrtt"));
        assert_ne!(code(&before, "ecf"), code(&after, "ecf"));
        // Whatever is not told apart counts as edited too.
        assert_ne!(code(&before, "blest"), code(&after, "blest"));
        let engine = Program { built_from: BuiltFrom { sources: Some(9), ..BUILT_FROM }, ..before };
        assert_ne!(code(&engine, "minrtt"), code(&after, "minrtt"));
    }

    #[test]
    fn neither_commit_nor_profile_nor_other_policies_of_ones_own_make_another_program() {
        let before = Program::new(BUILT_FROM, &own()).unwrap();
        let other = BuiltFrom { commit: "d", profile: "release", ..BUILT_FROM };
        let after = Program::new(other, &own()).unwrap().with_executable(7);
        assert_eq!(code(&before, "ecf"), code(&after, "ecf"));
        assert_ne!(code(&before, "mine"), code(&after, "mine"));
        assert_eq!(code(&after, "mine"), code(&after.clone(), "mine"));
    }

    #[test]
    fn another_content_of_a_policys_file_is_another_program() {
        let mut registry = Registry::builtin();
        let like = registry.get(Layer::Path, "minrtt").unwrap().clone();
        let params = [like.params.clone(), vec![Param::file("file", "what it is made of")]];
        let entry = quipu_policy::Entry { name: "of-file", params: params.concat(), ..like };
        registry.add_builtin(entry).unwrap();
        let program = Program::new(BUILT_FROM, &registry).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy");
        let text = format!("of-file:file={}", file.display());
        let code = |contents: &str| {
            std::fs::write(&file, contents).unwrap();
            let spec = PolicySpec::choose(&registry, [(Layer::Path, &*text)]).unwrap();
            program.code_of([&spec]).unwrap()
        };
        let (first, second, again) = (code("1"), code("2"), code("1"));
        assert_ne!(first, second);
        assert_eq!(first, again);
    }

    #[test]
    fn files_say_what_decides_them() {
        let program = Program::new(BUILT_FROM, &own()).unwrap().with_executable(7);
        let of = |path| {
            let spec = PolicySpec::choose(&own(), [(Layer::Path, path)]).unwrap();
            program.provenance([&spec])
        };
        assert!(of("ecf").program.starts_with("sources:"));
        assert_eq!(of("mine").program, "executable:00000000000000000000000000000007");
        let Provenance { commit, profile, .. } = of("ecf");
        assert_eq!((commit.as_str(), profile.as_str()), ("c-dirty", "edit, opt-level 3, no LTO"));
    }

    #[test]
    fn a_program_of_which_nothing_is_known_is_its_executable() {
        let program = Program::default();
        assert!(program.provenance([]).program.starts_with("executable:"));
        assert_eq!(program.frame(), Some(executable().unwrap()));
    }
}
