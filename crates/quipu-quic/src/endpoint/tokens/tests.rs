use quipu_base::Seed;

use super::*;
use crate::random::Seeded;
use crate::tls::rustls::{provider, token_key};

const V1: Version = Version::V1;
const DAY: Duration = Duration::from_secs(86_400);
const HERE: &str = "192.0.2.1:5000";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn key(secret: u8) -> Arc<dyn TokenKey> {
    token_key(&provider(), &[secret; 32]).unwrap()
}

fn tokens(config: TokenConfig) -> Tokens {
    Tokens::new(TokenConfig { unix_time: DAY.saturating_mul(20_000), ..config })
}

fn random() -> Seeded {
    Seeded(Seed::new(1).stream("tokens", 0))
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// A token of a Retry packet, and one of a connection, both made at once for `HERE`.
fn made(tokens: &Tokens, now: Instant) -> [Vec<u8>; 2] {
    let mut random = random();
    let retry = tokens.for_retry(now, V1, address(HERE), cid(1), cid(2), &mut random).unwrap();
    let later = tokens.issuer().unwrap().issue(now, V1, address(HERE).ip(), &mut random).unwrap();
    [retry, later]
}

#[test]
fn both_kinds_prove_an_address() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    let [retry, later] = made(&tokens, at(5));
    let checked = tokens.check(at(6), V1, address(HERE), &cid(2), &retry);
    assert_eq!(checked.state, TokenState::FromRetry);
    assert_eq!(checked.original_dcid, Some(cid(1)));
    // Another port, and any destination.
    let checked = tokens.check(at(6), V1, address("192.0.2.1:1"), &cid(9), &later);
    assert_eq!((checked.state, checked.original_dcid), (TokenState::FromConnection, None));
    let checked = tokens.check(at(6), V1, address(HERE), &cid(2), &[]);
    assert_eq!(checked.state, TokenState::Absent);
}

#[test]
fn a_retry_token_is_bound_to_address_port_connection_id_and_time() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    let [retry, _] = made(&tokens, at(100));
    for (now, from, to) in [
        (111, HERE, 2),
        (100, "192.0.2.2:5000", 2),
        (100, "192.0.2.1:5001", 2),
        (100, "[2001:db8::1]:5000", 2),
        (100, HERE, 1),
        // It was made in the future.
        (80, HERE, 2),
    ] {
        let checked = tokens.check(at(now), V1, address(from), &cid(to), &retry);
        assert_eq!(checked.state, TokenState::Invalid, "{now} {from} {to}");
        assert!(checked.is_failed_retry, "the client has to be told");
    }
    assert!(tokens.check(at(110), V1, address(HERE), &cid(2), &retry).state.is_valid());
}

#[test]
fn a_token_for_later_is_bound_to_the_address_and_lasts_for_weeks() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    let [_, later] = made(&tokens, at(0));
    let mut state = |days: u64, from: &str| {
        let now = at(days * 86_400);
        let checked = tokens.check(now, V1, address(from), &cid(5), &later);
        assert!(!checked.is_failed_retry);
        checked.state
    };
    assert_eq!(state(13, HERE), TokenState::FromConnection);
    assert_eq!(state(15, HERE), TokenState::Invalid);
    assert_eq!(state(1, "192.0.2.9:5000"), TokenState::Invalid);
}

/// <https://www.rfc-editor.org/rfc/rfc9369#section-5>
#[test]
fn a_token_of_one_version_is_not_valid_in_another() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    for token in made(&tokens, at(0)) {
        let mut state =
            |version| tokens.check(at(1), version, address(HERE), &cid(2), &token).state;
        assert_eq!(state(Version::V2), TokenState::Invalid);
        assert!(state(V1).is_valid());
    }
}

#[test]
fn a_token_is_good_for_one_connection() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    for token in made(&tokens, at(0)) {
        let checked = tokens.check(at(1), V1, address(HERE), &cid(2), &token);
        assert!(checked.state.is_valid());
        // Looking at it does not use it up: a first packet may come twice.
        assert_eq!(tokens.check(at(1), V1, address(HERE), &cid(2), &token), checked);
        tokens.on_used(at(1), &checked);
        let again = tokens.check(at(2), V1, address(HERE), &cid(2), &token);
        assert_eq!(again.state, TokenState::Invalid);
    }
}

#[test]
fn another_server_with_the_key_or_its_predecessor_takes_a_token() {
    let before = tokens(TokenConfig::with_key(key(1)));
    let made = made(&before, at(0));
    let states = |config: TokenConfig| {
        let mut tokens = tokens(config);
        [0, 1].map(|kind| tokens.check(at(1), V1, address(HERE), &cid(2), &made[kind]).state)
    };
    let valid = [TokenState::FromRetry, TokenState::FromConnection];
    assert_eq!(states(TokenConfig::with_key(key(1))), valid);
    let rotated = TokenConfig { previous_key: Some(key(1)), ..TokenConfig::with_key(key(2)) };
    assert_eq!(states(rotated), valid);
    assert_eq!(states(TokenConfig::with_key(key(2))), [TokenState::Invalid; 2]);
    assert_eq!(states(TokenConfig::default()), [TokenState::Invalid; 2]);
}

#[test]
fn a_clock_that_is_set_counts_for_new_tokens() {
    let mut here = tokens(TokenConfig::with_key(key(1)));
    let mut there = tokens(TokenConfig::with_key(key(1)));
    here.set_unix_time(at(50), DAY.saturating_mul(30_000));
    let [retry, _] = made(&here, at(50));
    let check =
        |tokens: &mut Tokens, now| tokens.check(now, V1, address(HERE), &cid(2), &retry).state;
    assert_eq!(check(&mut there, at(50)), TokenState::Invalid);
    there.set_unix_time(at(7), DAY.saturating_mul(30_000));
    assert_eq!(check(&mut there, at(8)), TokenState::FromRetry);
}

#[test]
fn rubbish_is_no_token_of_ours_and_tokens_tell_nothing() {
    let mut tokens = tokens(TokenConfig::with_key(key(1)));
    for token in made(&tokens, at(0)) {
        assert!(!token.windows(4).any(|bytes| bytes == [192, 0, 2, 1]), "the address is sealed");
        for length in 0..token.len() {
            let checked = tokens.check(at(0), V1, address(HERE), &cid(2), &token[..length]);
            assert!(!checked.state.is_valid() && !checked.is_failed_retry);
        }
        for at_byte in 0..token.len() {
            let mut changed = token.clone();
            changed[at_byte] ^= 0x40;
            let checked = tokens.check(at(0), V1, address(HERE), &cid(2), &changed);
            assert_eq!(checked, Checked::plain(TokenState::Invalid));
        }
    }
}
