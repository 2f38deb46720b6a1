//! Random bytes for everything that goes on a wire: connection IDs, tokens, challenges.
//!
//! There are two sources. [`SecureSource`] is that of a TLS provider; an endpoint for real sockets
//! draws from it. A seeded stream repeats a run byte by byte in virtual time; whoever knows its
//! state knows what it will give next, so it must never meet a network. Neither can take the
//! other's place by accident: [`Endpoint::new`](crate::Endpoint::new) takes a [`SecureSource`],
//! which no seeded generator is, and [`Endpoint::seeded`](crate::Endpoint::seeded) is called in the
//! laboratory and in tests only, which a test of the workspace checks.

use std::sync::{Arc, Mutex, PoisonError};

use quipu_base::{Random, Seed};
use rand_core::Rng;
use thiserror::Error;

/// The source of random bytes failed. Nothing is sent that should have been random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the source of random bytes failed")]
pub struct NoRandomness;

/// Cryptographically secure random bytes, as a TLS provider has them: see
/// [`tls::rustls::secure_source`](crate::tls::rustls::secure_source).
pub trait SecureSource: Send + Sync {
    /// Fills `bytes` with bytes that nobody can predict.
    ///
    /// # Errors
    /// [`NoRandomness`] if the source has none; `bytes` must not be used then.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness>;
}

/// Where an endpoint and its connections draw random bytes.
pub trait Randomness: Send {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`NoRandomness`] if the source failed; `bytes` must not be used then.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoRandomness>;

    /// A source of its own for a part of the caller, such as a connection.
    ///
    /// # Errors
    /// [`NoRandomness`] if the source failed.
    fn child(&mut self) -> Result<Box<dyn Randomness>, NoRandomness>;
}

impl dyn Randomness + '_ {
    /// Draws `N` bytes.
    pub(crate) fn draw<const N: usize>(&mut self) -> Result<[u8; N], NoRandomness> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}

/// The seeded source: for virtual time.
pub(crate) struct Seeded(pub(crate) Random);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.0.fill_bytes(bytes);
        Ok(())
    }

    fn child(&mut self) -> Result<Box<dyn Randomness>, NoRandomness> {
        Ok(Box::new(Seeded(Seed::new(self.0.next_u64()).stream("connection", 0))))
    }
}

/// The secure source. It is asked for many bytes at a time, since each request may be a system call
/// and most draws are of eight bytes.
#[derive(Clone)]
pub(crate) struct Secure(Arc<Mutex<Pool>>);

/// Bytes that are asked for at a time; our choice: 32 connection IDs of eight bytes.
const POOL: usize = 256;

struct Pool {
    source: Arc<dyn SecureSource>,
    bytes: [u8; POOL],
    /// Bytes that were given away, and are zero; the others are still good.
    used: usize,
}

impl Secure {
    pub(crate) fn new(source: Arc<dyn SecureSource>) -> Self {
        Secure(Arc::new(Mutex::new(Pool { source, bytes: [0; POOL], used: POOL })))
    }
}

impl Pool {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        if bytes.len() > POOL {
            return self.source.fill(bytes);
        }
        if bytes.len() > POOL - self.used {
            self.used = POOL;
            self.source.fill(&mut self.bytes)?;
            self.used = 0;
        }
        let end = self.used + bytes.len();
        let fresh = self.bytes.get_mut(self.used..end).ok_or(NoRandomness)?;
        bytes.copy_from_slice(fresh);
        // What was given away is a secret of whoever got it.
        fresh.fill(0);
        self.used = end;
        Ok(())
    }
}

impl Randomness for Secure {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        // A thread that panicked left whole bytes behind at worst.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes)
    }

    fn child(&mut self) -> Result<Box<dyn Randomness>, NoRandomness> {
        Ok(Box::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Gives 0, 1, 2 ... in turn, never zero where a byte could pass for an unfilled one, until it
    /// has given `most` bytes.
    struct Counting {
        given: AtomicUsize,
        most: usize,
    }

    impl SecureSource for Counting {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
            let start = self.given.fetch_add(bytes.len(), Ordering::Relaxed);
            if start + bytes.len() > self.most {
                return Err(NoRandomness);
            }
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = ((start + at) % 251) as u8 + 1;
            }
            Ok(())
        }
    }

    fn secure(most: usize) -> Secure {
        Secure::new(Arc::new(Counting { given: AtomicUsize::new(0), most }))
    }

    #[test]
    fn no_byte_is_given_twice_to_whomever_it_goes() {
        let mut first = secure(1 << 20);
        let mut second = first.child().unwrap();
        let mut given = Vec::new();
        for round in 0..200 {
            let mut bytes = [0; 8];
            if round % 2 == 0 { first.fill(&mut bytes) } else { second.fill(&mut bytes) }.unwrap();
            given.extend(bytes);
        }
        let expected: Vec<u8> = (0..1600).map(|at| (at % 251) as u8 + 1).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn more_than_the_pool_holds_is_drawn_from_the_source_itself() {
        let mut random = secure(1 << 20);
        let mut long = [0; 3 * POOL];
        random.fill(&mut long).unwrap();
        assert!(long.iter().all(|byte| *byte != 0));
    }

    #[test]
    fn bytes_that_were_given_away_are_forgotten() {
        let mut random = secure(1 << 20);
        random.fill(&mut [0; 10]).unwrap();
        let pool = random.0.lock().unwrap();
        assert!(pool.bytes[..10].iter().all(|byte| *byte == 0));
        assert!(pool.bytes[10..].iter().all(|byte| *byte != 0));
    }

    #[test]
    fn a_source_that_fails_gives_nothing() {
        let mut random = secure(POOL);
        let mut bytes = [0; POOL - 1];
        random.fill(&mut bytes).unwrap();
        assert_eq!(random.fill(&mut [0; 2]), Err(NoRandomness));
        // The byte that was left in the pool belongs to a draw that failed.
        assert_eq!(random.fill(&mut [0; 1]), Err(NoRandomness));
    }

    #[test]
    fn children_of_a_seed_differ_and_repeat() {
        let draw = |seed: u64| {
            let mut parent = Seeded(Seed::new(seed).stream("endpoint", 0));
            let mut children = [parent.child().unwrap(), parent.child().unwrap()];
            children.each_mut().map(|child| child.draw::<8>().unwrap())
        };
        let [a, b] = draw(1);
        assert_ne!(a, b);
        assert_eq!(draw(1), [a, b]);
        assert_ne!(draw(2), [a, b]);
    }
}
