//! What went wrong: one line, and the exit code that goes with it.

use std::fmt::Display;

/// Why the command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments or an input file are wrong.
    Usage(String),
    /// A run failed, or its results could not be written.
    Run(String),
    /// The user was told why already; only the exit code is left.
    Told(u8),
    /// Ctrl-C.
    Interrupted,
    /// Help or a version was asked for.
    Shown(String),
    /// Nothing was asked for, so help is shown instead.
    Nothing(String),
}

impl Failure {
    /// The arguments or an input file are wrong.
    pub(crate) fn usage(error: impl Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    /// A run failed.
    pub(crate) fn run(error: impl Display) -> Failure {
        Failure::Run(error.to_string())
    }

    /// What went wrong, in words.
    pub(crate) fn reason(self) -> String {
        match self {
            Failure::Usage(reason) | Failure::Run(reason) => reason,
            Failure::Shown(text) | Failure::Nothing(text) => text,
            Failure::Told(code) => format!("exit code {code}"),
            Failure::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Tells the user. The exit code that goes with it.
    pub(crate) fn report(self) -> u8 {
        let (message, code) = match self {
            Failure::Usage(message) => (message, 2),
            Failure::Run(message) => (message, 1),
            Failure::Told(code) => return code,
            Failure::Interrupted => (Failure::Interrupted.reason(), 130),
            Failure::Shown(text) => {
                return crate::print(&text).map_or_else(Failure::report, |()| 0);
            }
            Failure::Nothing(text) => {
                eprint!("{text}");
                return 2;
            }
        };
        eprintln!("error: {}", one_line(&message));
        code
    }
}

/// The message without line breaks or other control characters, which may come from a file.
fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").chars().filter(|sign| !sign.is_control()).collect()
}
