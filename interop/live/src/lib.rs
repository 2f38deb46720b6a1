//! What all programs of this package share: the command line, files over hq-interop and HTTP/3, and
//! certificates.
//!
//! hq-interop is what QUIC implementations test each other with: a client opens a bidirectional
//! stream for each file and sends `GET /NAME`, a server answers with the bytes of the file and the
//! end of the stream. <https://github.com/quic-interop/quic-interop-runner>
//!
//! Over HTTP/3 the files are fetched by GET, and bodies of POST come back.
//!
//! Start with four types:
//! - [`Options`]: what a program was asked to do, with the [`Case`] to test;
//! - [`Url`]: a file to fetch;
//! - [`http3::Client`]: what a library has to offer for the cases of HTTP/3;
//! - [`facts`]: how a program tells what it saw.

pub mod args;
pub mod certificate;
pub mod facts;
pub mod files;
pub mod http3;
pub mod tls;

pub use args::{Case, Options, Role, UnknownCase, Url};

/// Bytes of a request, at most: longer ones are refused.
pub const MAX_REQUEST: usize = 4096;

/// Anything that went wrong, as text: these programs end with it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The exit code of a program that does not do a test case.
pub const UNSUPPORTED: i32 = 127;

/// Runs a program to its end, and exits with 0, with [`UNSUPPORTED`] for a case that it does not
/// know, or with 1 and the reason.
pub fn finish(result: Result<(), Failure>) -> ! {
    let code = match result {
        Ok(()) => 0,
        Err(error) if error.is::<UnknownCase>() => {
            eprintln!("{error}");
            UNSUPPORTED
        }
        Err(error) => {
            eprintln!("{error}");
            1
        }
    };
    std::process::exit(code)
}
