//! Many connections at one endpoint.
