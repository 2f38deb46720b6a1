//! What a handshake agreed on, for the application to look at.

use std::fmt;

macro_rules! registered {
    ($(#[$doc:meta])* $type:ident { $($name:ident = $value:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub u16);

        impl $type {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: $type = $type($value);
            )*

            /// The registered name; `None` for a number that is not known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#06x}", self.0),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({})"), self)
            }
        }
    };
}

registered! {
    /// A cipher suite of TLS 1.3. <https://www.rfc-editor.org/rfc/rfc8446#appendix-B.4>
    CipherSuite {
        AES_128_GCM_SHA256 = 0x1301, "TLS_AES_128_GCM_SHA256";
        AES_256_GCM_SHA384 = 0x1302, "TLS_AES_256_GCM_SHA384";
        CHACHA20_POLY1305_SHA256 = 0x1303, "TLS_CHACHA20_POLY1305_SHA256";
    }
}

registered! {
    /// A group of the key exchange. <https://www.rfc-editor.org/rfc/rfc8446#section-4.2.7>
    KeyExchangeGroup {
        SECP256R1 = 0x0017, "secp256r1";
        SECP384R1 = 0x0018, "secp384r1";
        SECP521R1 = 0x0019, "secp521r1";
        X25519 = 0x001d, "x25519";
        X25519_MLKEM768 = 0x11ec, "X25519MLKEM768";
        SECP256R1_MLKEM768 = 0x11eb, "SecP256r1MLKEM768";
    }
}

/// What both ends of a handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The cipher suite.
    pub cipher_suite: CipherSuite,
    /// The group of the key exchange; `None` if there was none.
    pub group: Option<KeyExchangeGroup>,
    /// True if a session of an earlier connection was resumed: certificates were not shown again.
    pub resumed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_registered_names() {
        assert_eq!(CipherSuite(0x1302).to_string(), "TLS_AES_256_GCM_SHA384");
        assert_eq!(KeyExchangeGroup::X25519.to_string(), "x25519");
        assert_eq!(format!("{:?}", KeyExchangeGroup(0x0a0a)), "KeyExchangeGroup(0x0a0a)");
    }
}
