//! What happens to connections and paths over sockets, on standard error, as `--log` and the variable
//! `QUIPU_LOG` ask for.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::EventOptions;
use crate::failure::Failure;

/// Prints what passes the filter from now on. True if anything may pass.
pub(crate) fn follow(options: &EventOptions) -> Result<bool, Failure> {
    let variable = || std::env::var("QUIPU_LOG").ok().filter(|text| !text.is_empty());
    let (source, text) = match (&options.log, variable()) {
        (Some(text), _) => ("--log", text.clone()),
        (None, Some(text)) => ("QUIPU_LOG", text),
        (None, None) => return Ok(false),
    };
    let filter = filter(&text).map_err(|error| Failure::Usage(format!("{source}: {error}")))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter);
    let begun = subscriber.with_writer(std::io::stderr).try_init();
    begun.map_err(|error| Failure::Run(format!("{source}: {error}")))?;
    Ok(LevelFilter::current() != LevelFilter::OFF)
}

fn filter(text: &str) -> Result<EnvFilter, String> {
    let wrong = |part: &str| {
        format!(
            "`{part}`: expected a level (error, warn, info, debug, trace, off), or TARGET=LEVEL, such as \
             quipu_tokio=debug; several with commas between"
        )
    };
    // A word that is no level would name a target, of which nothing would be told.
    let is_word = |part: &&str| part.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
    let words = text.split(',').map(str::trim).filter(is_word);
    if let Some(word) = words.into_iter().find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(wrong(word));
    }
    EnvFilter::builder().parse(text).map_err(|_| wrong(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_targets_and_spans_are_filters() {
        for text in [
            "info",
            "DEBUG",
            "warn,quipu_tokio=trace",
            "quipu_tokio[connection{role=server}]=debug",
        ] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for (text, part) in [
            ("debg", "`debg`"),
            ("quipu_tokio", "`quipu_tokio`"),
            ("quipu_tokio=loud", "`quipu_tokio=loud`"),
            ("info, debug, lod", "`lod`"),
        ] {
            let error = filter(text).unwrap_err();
            assert!(error.starts_with(part), "{text}: {error}");
        }
    }
}
