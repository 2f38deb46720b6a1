//! Dictionaries of structured fields, as far as priorities need them: integers and booleans are
//! values, all other types are checked and passed over.
//! <https://www.rfc-editor.org/rfc/rfc8941#section-4.2.2>

use super::MalformedPriority;

/// The value of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Integer(i64),
    Boolean(bool),
    /// Of another type: a decimal, string, token, byte sequence or list.
    Other,
}

/// Tells `member` each key with its value, in order. What was told holds only if all is well.
pub(super) fn read(
    octets: &[u8],
    mut member: impl FnMut(&[u8], Value),
) -> Result<(), MalformedPriority> {
    let mut input = Input { octets, at: 0 };
    input.skip(b" ");
    while !input.is_empty() {
        let key = input.key()?;
        let value = if input.take(b'=') {
            input.item_or_list()?
        } else {
            input.parameters()?;
            Value::Boolean(true)
        };
        member(key, value);
        input.skip(b" \t");
        if input.is_empty() {
            break;
        }
        input.expect(b',')?;
        input.skip(b" \t");
        if input.is_empty() {
            return Err(input.fault());
        }
    }
    Ok(())
}

struct Input<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn peek(&self) -> Option<u8> {
        self.octets.get(self.at).copied()
    }

    fn is_empty(&self) -> bool {
        self.at >= self.octets.len()
    }

    fn fault(&self) -> MalformedPriority {
        MalformedPriority { at: self.at }
    }

    fn take(&mut self, octet: u8) -> bool {
        let found = self.peek() == Some(octet);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, octet: u8) -> Result<(), MalformedPriority> {
        if self.take(octet) { Ok(()) } else { Err(self.fault()) }
    }

    fn skip(&mut self, blanks: &[u8]) {
        self.take_while(|octet| blanks.contains(&octet));
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.octets.get(self.at..).unwrap_or_default();
        let len = rest.iter().take_while(|&&octet| test(octet)).count();
        self.at += len;
        &rest[..len]
    }

    fn key(&mut self) -> Result<&'a [u8], MalformedPriority> {
        if !self.peek().is_some_and(|first| first.is_ascii_lowercase() || first == b'*') {
            return Err(self.fault());
        }
        Ok(self.take_while(|octet| {
            octet.is_ascii_lowercase() || octet.is_ascii_digit() || b"_-.*".contains(&octet)
        }))
    }

    fn item_or_list(&mut self) -> Result<Value, MalformedPriority> {
        let value = if self.take(b'(') {
            self.rest_of_list()?;
            Value::Other
        } else {
            self.bare_item()?
        };
        self.parameters()?;
        Ok(value)
    }

    fn rest_of_list(&mut self) -> Result<(), MalformedPriority> {
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Ok(());
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.peek(), Some(b' ' | b')')) {
                return Err(self.fault());
            }
        }
    }

    fn parameters(&mut self) -> Result<(), MalformedPriority> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Ok(())
    }

    fn bare_item(&mut self) -> Result<Value, MalformedPriority> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'"') => self.string(),
            Some(b'?') => self.boolean(),
            Some(b':') => self.byte_sequence(),
            Some(b'*' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.take_while(|octet| {
                    octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&octet)
                });
                Ok(Value::Other)
            }
            _ => Err(self.fault()),
        }
    }

    fn number(&mut self) -> Result<Value, MalformedPriority> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        let digits = self.take_while(|octet| octet.is_ascii_digit());
        if self.take(b'.') {
            let fraction = self.take_while(|octet| octet.is_ascii_digit());
            let fits = (1..=12).contains(&digits.len()) && (1..=3).contains(&fraction.len());
            return if fits { Ok(Value::Other) } else { Err(self.fault()) };
        }
        if !(1..=15).contains(&digits.len()) {
            return Err(self.fault());
        }
        // Fifteen digits fit.
        let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Ok(Value::Integer(sign * number))
    }

    fn string(&mut self) -> Result<Value, MalformedPriority> {
        self.expect(b'"')?;
        loop {
            self.take_while(|octet| {
                matches!(octet, b' '..=b'~') && octet != b'"' && octet != b'\\'
            });
            if self.take(b'"') {
                return Ok(Value::Other);
            }
            self.expect(b'\\')?;
            if !self.take(b'"') {
                self.expect(b'\\')?;
            }
        }
    }

    fn boolean(&mut self) -> Result<Value, MalformedPriority> {
        self.expect(b'?')?;
        if self.take(b'1') {
            return Ok(Value::Boolean(true));
        }
        self.expect(b'0')?;
        Ok(Value::Boolean(false))
    }

    fn byte_sequence(&mut self) -> Result<Value, MalformedPriority> {
        self.expect(b':')?;
        self.take_while(|octet| octet.is_ascii_alphanumeric() || b"+/=".contains(&octet));
        self.expect(b':')?;
        Ok(Value::Other)
    }
}
