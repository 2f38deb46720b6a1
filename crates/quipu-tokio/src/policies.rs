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
    let spec = PolicySpec::parse(registry, text)?;
    // A policy that draws is not to draw what it drew in the last process.
    let mut seed = [0; 8];
    let drawn = secure_source(&provider()).fill(&mut seed);
    let seed = Seed::new(drawn.map_or(1, |()| u64::from_le_bytes(seed)));
    // What cannot be built is found here.
    spec.build(&BuildContext::new(seed))?;
    Ok(Arc::new(move || {
        spec.build(&BuildContext::new(seed)).expect("the same policies were built before")
    }))
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
