//! Policies by name, for the configurations of clients and servers.

use std::sync::Arc;

use quipu_base::Seed;
use quipu_policy::registry::SpecError;
use quipu_policy::{BuildContext, PolicySpec, Registry};
use quipu_quic::endpoint::PolicyFactory;
use quipu_quic::tls::rustls::{provider, secure_source};

/// Policies as text, such as `stream=wrr path=ecf:beta=0.5`; what is not given is the default of
/// `registry`. Policies of one's own go into the registry, or a [`PolicyFactory`] makes them without
/// one.
///
/// # Errors
/// If the text names no policy, or a value that its parameter cannot have.
pub fn policies(registry: &Registry, text: &str) -> Result<PolicyFactory, SpecError> {
    policies_of(&PolicySpec::parse(registry, text)?, BuildContext::new(Seed::new(0)).initial_window)
}

/// Policies that were chosen, with a first congestion window of so many packets.
///
/// # Errors
/// If a value is none that its parameter can have.
pub fn policies_of(spec: &PolicySpec, initial_window: u32) -> Result<PolicyFactory, SpecError> {
    // A policy that draws is not to draw what it drew in the last process.
    let mut seed = [0; 8];
    let drawn = secure_source(&provider()).fill(&mut seed);
    let seed = Seed::new(drawn.map_or(1, |()| u64::from_le_bytes(seed)));
    let context = move || {
        let mut context = BuildContext::new(seed);
        context.initial_window = initial_window;
        context
    };
    // What cannot be built is found here.
    spec.build(&context())?;
    let spec = spec.clone();
    Ok(Arc::new(move || spec.build(&context()).expect("the same policies were built before")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_policy_has_is_an_error_with_the_nearest_one() {
        let registry = Registry::builtin();
        assert!(policies(&registry, "path=ecf").is_ok());
        let error = policies(&registry, "path=minrt").err().unwrap();
        assert!(error.to_string().contains("minrtt"), "{error}");
    }
}
