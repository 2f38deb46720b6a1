//! What makes a request or a response well-formed, in HTTP/2 and HTTP/3 alike.
//! <https://www.rfc-editor.org/rfc/rfc7540#section-8.1.2>,
//! <https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2>

use thiserror::Error;

use crate::field::{Field, FieldList};

/// What the head of a request says that its body depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the method is HEAD, so that the response has no body.
    pub is_head: bool,
    /// Octets of the body, if stated.
    pub content_length: Option<u64>,
}

/// What the head of a response says that its body depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseInfo {
    /// Status code, 100 to 999.
    pub status: u16,
    /// Octets of the body, if stated.
    pub content_length: Option<u64>,
}

/// Why a message is malformed. Names are escaped where they are not ASCII.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A name that is empty, or contains upper case or no token characters.
    #[error("field name {name:?} is not a lower-case token")]
    Name {
        /// The name.
        name: String,
    },
    /// A value with NUL, CR or LF.
    #[error("the value of {name} contains NUL, CR or LF")]
    Value {
        /// Name of the field.
        name: String,
    },
    /// A field that only makes sense for one hop of HTTP/1.
    #[error("field {name} belongs to HTTP/1 connections")]
    ConnectionSpecific {
        /// Name of the field.
        name: String,
    },
    /// A pseudo-header field that this kind of message does not have.
    #[error("pseudo-header field {name} is not allowed here")]
    UnexpectedPseudo {
        /// Name of the field.
        name: String,
    },
    /// A pseudo-header field after a regular one.
    #[error("pseudo-header field {name} follows a regular field")]
    MisplacedPseudo {
        /// Name of the field.
        name: String,
    },
    /// A pseudo-header field came twice.
    #[error("pseudo-header field {name} is repeated")]
    RepeatedPseudo {
        /// Name of the field.
        name: &'static str,
    },
    /// A mandatory pseudo-header field is missing or empty.
    #[error("pseudo-header field {name} is missing or empty")]
    MissingPseudo {
        /// Name of the field.
        name: &'static str,
    },
    /// The status is not three digits from 100.
    #[error("status {value:?} is not a number from 100 to 999")]
    Status {
        /// The value.
        value: String,
    },
    /// The content length is no number, or two differ.
    #[error("content-length {value:?} is not one number below 2^64")]
    ContentLength {
        /// The value.
        value: String,
    },
    /// The body has another length than was stated.
    #[error("a body of {received} octets or more, where {expected} are expected")]
    BodyLength {
        /// Octets expected.
        expected: u64,
        /// Octets received until the end, or until they were too many.
        received: u64,
    },
    /// A promised request with a method that is not safe and cacheable, or with content.
    #[error("a promised request with method {method:?}{}; GET or HEAD without content can be pushed",
        if *.content { " and content" } else { "" })]
    NotPushable {
        /// The method.
        method: String,
        /// Whether it has content.
        content: bool,
    },
    /// The `:authority` pseudo-header field and the `host` field name different ones.
    #[error(":authority is {authority:?}, and host is {host:?}")]
    AuthorityDiffers {
        /// The pseudo-header field.
        authority: String,
        /// The field.
        host: String,
    },
    /// A second field section; trailers are not carried.
    #[error("a second field section")]
    Trailers,
}

/// Pseudo-header fields seen, by position in a list of names.
struct Pseudo<const N: usize> {
    names: [&'static str; N],
    values: [Option<usize>; N],
}

/// Checks the head of a request.
///
/// # Errors
/// The request is malformed, a stream error.
pub fn check_request(fields: &FieldList) -> Result<RequestInfo, MessageError> {
    check_request_head(fields, Pseudo::new([":method", ":scheme", ":path", ":authority"]))
}

/// Checks the head of a request of HTTP/3, whose rules for authorities are stricter. With `protocols`,
/// CONNECT may name one: <https://www.rfc-editor.org/rfc/rfc9220#section-3>
///
/// # Errors
/// The request is malformed, a stream error.
pub fn check_h3_request(fields: &FieldList, protocols: bool) -> Result<RequestInfo, MessageError> {
    if protocols {
        let names = [":method", ":scheme", ":path", ":authority", ":protocol"];
        let info = check_request_head(fields, Pseudo::new(names))?;
        check_authority(fields)?;
        return Ok(info);
    }
    let info = check_request(fields)?;
    check_authority(fields)?;
    Ok(info)
}

/// Checks the fields behind a body: there are no pseudo-header fields.
///
/// # Errors
/// They are malformed, a stream error.
pub fn check_trailers(fields: &FieldList) -> Result<(), MessageError> {
    check_fields(fields, &mut Pseudo::new([])).map(|_| ())
}

/// Each request has an authority, and one only.
fn check_authority(fields: &FieldList) -> Result<(), MessageError> {
    let authority = fields.get(":authority");
    let host = fields.get("host");
    match (authority, host) {
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# If both fields are present, they MUST contain the same value.
        (Some(authority), Some(host)) if authority != host => {
            let [authority, host] = [authority, host].map(printable);
            Err(MessageError::AuthorityDiffers { authority, host })
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# If the :scheme pseudo-header field identifies a scheme that has a mandatory authority
        //# component (including "http" and "https"), the request MUST contain either an :authority
        //# pseudo-header field or a Host header field. If these fields are present, they MUST NOT
        //# be empty.
        (None | Some(b""), None | Some(b"")) => {
            Err(MessageError::MissingPseudo { name: ":authority" })
        }
        _ => Ok(()),
    }
}

fn check_request_head<const N: usize>(
    fields: &FieldList,
    mut pseudo: Pseudo<N>,
) -> Result<RequestInfo, MessageError> {
    let content_length = check_fields(fields, &mut pseudo)?;
    let method = pseudo.require(0, fields)?;
    let protocol = pseudo.values.get(4).copied().flatten();
    if protocol.is_some() && method != b"CONNECT" {
        return Err(MessageError::UnexpectedPseudo { name: ":protocol".into() });
    }
    if method == b"CONNECT" && protocol.is_none() {
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.5
        //# The ":scheme" and ":path" pseudo-header fields MUST be omitted.
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.4
        //# A CONNECT request MUST be constructed as follows:
        pseudo.forbid(1)?;
        pseudo.forbid(2)?;
        pseudo.require(3, fields)?;
    } else {
        pseudo.require(1, fields)?;
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.3.1
        //# All HTTP/2 requests MUST include exactly one valid value for the ":method", ":scheme",
        //# and ":path" pseudo-header fields, unless they are CONNECT requests (Section 8.5).
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# All HTTP/3 requests MUST include exactly one value for the :method, :scheme, and :path
        //# pseudo-header fields, unless the request is a CONNECT request; see Section 4.4.
        pseudo.require(2, fields)?;
    }
    Ok(RequestInfo { is_head: method == b"HEAD", content_length })
}

/// Checks the head of a request that a server promises.
///
/// # Errors
/// The request is malformed, or not one that may be pushed: a stream error.
/// <https://www.rfc-editor.org/rfc/rfc9113#section-8.4>
pub fn check_promise(fields: &FieldList) -> Result<RequestInfo, MessageError> {
    let info = check_request(fields)?;
    let value = |name: &str| fields.get(name).unwrap_or_default();
    // Of the methods that are safe, these two are cacheable: RFC 9110, sections 9.2.1 and 9.2.3.
    // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
    //# Promised requests MUST be safe (see Section 9.2.1 of [HTTP]) and cacheable (see Section
    //# 9.2.3 of [HTTP]).
    let method = value(":method");
    let content = info.content_length.is_some_and(|length| length > 0);
    if !matches!(method, b"GET" | b"HEAD") || content {
        return Err(MessageError::NotPushable { method: printable(method), content });
    }
    // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
    //# The server MUST include a value in the ":authority" pseudo-header field for which the
    //# server is authoritative (see Section 10.1).
    if value(":authority").is_empty() {
        return Err(MessageError::MissingPseudo { name: ":authority" });
    }
    Ok(info)
}

/// Checks the head of a response.
///
/// # Errors
/// The response is malformed, a stream error.
pub fn check_response(fields: &FieldList) -> Result<ResponseInfo, MessageError> {
    let mut pseudo = Pseudo::new([":status"]);
    let content_length = check_fields(fields, &mut pseudo)?;
    // https://www.rfc-editor.org/rfc/rfc9113#section-8.3.2
    //# This pseudo-header field MUST be included in all responses, including interim responses;
    //# otherwise, the response is malformed (Section 8.1.1).
    // https://www.rfc-editor.org/rfc/rfc9114#section-4.3.2
    //# This pseudo-header field MUST be included in all responses; otherwise, the response is
    //# malformed (see Section 4.1.2).
    let value = pseudo.require(0, fields)?;
    let status = match value {
        &[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            [a, b, c].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))
        }
        _ => return Err(MessageError::Status { value: printable(value) }),
    };
    Ok(ResponseInfo { status, content_length })
}

impl<const N: usize> Pseudo<N> {
    const fn new(names: [&'static str; N]) -> Self {
        Pseudo { names, values: [None; N] }
    }

    fn see(&mut self, field: Field<'_>, at: usize) -> Result<(), MessageError> {
        let position = self.names.iter().position(|name| name.as_bytes() == field.name);
        let Some(position) = position else {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.3
            //# Endpoints MUST NOT generate pseudo-header fields other than those defined in this
            //# document. Pseudo-header fields defined for requests MUST NOT appear in responses;
            //# pseudo-header fields defined for responses MUST NOT appear in requests. Endpoints
            //# MUST treat a request or response that contains undefined or invalid pseudo-header
            //# fields as malformed (Section 8.1.1).
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# Endpoints MUST NOT generate pseudo-header fields other than those defined in this
            //# document. [...] Pseudo-header fields defined for requests MUST NOT appear in
            //# responses; pseudo-header fields defined for responses MUST NOT appear in requests.
            //# Pseudo-header fields MUST NOT appear in trailer sections. Endpoints MUST treat a
            //# request or response that contains undefined or invalid pseudo-header fields as
            //# malformed.
            return Err(MessageError::UnexpectedPseudo { name: printable(field.name) });
        };
        match self.values[position].replace(at) {
            None => Ok(()),
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.3
            //# The same pseudo-header field name MUST NOT appear more than once in a field block.
            //# A field block for an HTTP request or response that contains a repeated
            //# pseudo-header field name MUST be treated as malformed (Section 8.1.1).
            Some(_) => Err(MessageError::RepeatedPseudo { name: self.names[position] }),
        }
    }

    fn require<'a>(
        &self,
        position: usize,
        fields: &'a FieldList,
    ) -> Result<&'a [u8], MessageError> {
        self.values[position]
            .and_then(|at| fields.iter().nth(at))
            .map(|field| field.value)
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.3.1
            //# This pseudo-header field MUST NOT be empty for "http" or "https" URIs; "http" or
            //# "https" URIs that do not contain a path component MUST include a value of '/'.
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
            //# This pseudo-header field MUST NOT be empty for "http" or "https" URIs; "http" or
            //# "https" URIs that do not contain a path component MUST include a value of / (ASCII
            //# 0x2f).
            .filter(|value| !value.is_empty())
            .ok_or(MessageError::MissingPseudo { name: self.names[position] })
    }

    fn forbid(&self, position: usize) -> Result<(), MessageError> {
        match self.values[position] {
            None => Ok(()),
            Some(_) => Err(MessageError::UnexpectedPseudo { name: self.names[position].into() }),
        }
    }
}

/// Checks each field; returns the content length.
fn check_fields<const N: usize>(
    fields: &FieldList,
    pseudo: &mut Pseudo<N>,
) -> Result<Option<u64>, MessageError> {
    let mut content_length = None;
    let mut regular = false;
    // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1
    //# Implementations MUST perform the following minimal validation of field names and values:
    for (at, field) in fields.iter().enumerate() {
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1
        //# A field value MUST NOT contain the zero value (ASCII NUL, 0x00), line feed (ASCII LF,
        //# 0x0a), or carriage return (ASCII CR, 0x0d) at any position.
        if field.value.iter().any(|octet| matches!(octet, 0 | b'\r' | b'\n')) {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1
            //# A request or response that contains a field that violates any of these conditions
            //# MUST be treated as malformed (Section 8.1.1).
            // https://www.rfc-editor.org/rfc/rfc9114#section-10.3
            //# Any request or response that contains a character not permitted in a field value
            //# MUST be treated as malformed.
            return Err(MessageError::Value { name: printable(field.name) });
        }
        if field.name.starts_with(b":") {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.3
            //# All pseudo-header fields MUST appear in a field block before all regular field
            //# lines. Any request or response that contains a pseudo-header field that appears in
            //# a field block after a regular field line MUST be treated as malformed (Section
            //# 8.1.1).
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# All pseudo-header fields MUST appear in the header section before regular header
            //# fields. Any request or response that contains a pseudo-header field that appears in
            //# a header section after a regular header field MUST be treated as malformed.
            if regular {
                return Err(MessageError::MisplacedPseudo { name: printable(field.name) });
            }
            pseudo.see(field, at)?;
            continue;
        }
        regular = true;
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.2
        //# Field names MUST be converted to lowercase when constructing an HTTP/2 message.
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1
        //# HTTP/2 implementations SHOULD validate field names and values according to their
        //# definitions in Sections 5.1 and 5.5 of [HTTP], respectively, and treat messages that
        //# contain prohibited characters as malformed (Section 8.1.1). A field name MUST NOT
        //# contain characters in the ranges 0x00-0x20, 0x41-0x5a, or 0x7f-0xff (all ranges
        //# inclusive). With the exception of pseudo-header fields (Section 8.3), which have a
        //# name that starts with a single colon, field names MUST NOT include a colon (ASCII
        //# COLON, 0x3a).
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.2
        //# Characters in field names MUST be converted to lowercase prior to their encoding. A
        //# request or response containing uppercase characters in field names MUST be treated as
        //# malformed.
        // https://www.rfc-editor.org/rfc/rfc9114#section-10.3
        //# Requests or responses containing invalid field names MUST be treated as malformed.
        if field.name.is_empty() || !field.name.iter().all(|&octet| is_lower_token(octet)) {
            return Err(MessageError::Name { name: printable(field.name) });
        }
        match field.name {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2
            //# An endpoint MUST NOT generate an HTTP/2 message containing connection-specific
            //# header fields. Any message containing connection-specific header fields MUST be
            //# treated as malformed (Section 8.1.1).
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.2
            //# An endpoint MUST NOT generate an HTTP/3 field section containing connection-specific
            //# fields; any message containing connection-specific fields MUST be treated as
            //# malformed.
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
            //# Transfer codings (see Section 7 of [HTTP/1.1]) are not defined for HTTP/3; the
            //# Transfer-Encoding header field MUST NOT be used.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => {
                return Err(MessageError::ConnectionSpecific { name: printable(field.name) });
            }
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2
            //# The only exception to this is the TE header field, which MAY be present in an
            //# HTTP/2 request; when it is, it MUST NOT contain any value other than "trailers".
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.2
            //# The only exception to this is the TE header field, which MAY be present in an HTTP/3
            //# request header; when it is, it MUST NOT contain any value other than "trailers".
            b"te" if field.value != b"trailers" => {
                return Err(MessageError::ConnectionSpecific { name: printable(field.name) });
            }
            b"content-length" => {
                let length = number(field.value)
                    .filter(|&length| content_length.is_none_or(|other| other == length));
                let value = || printable(field.value);
                let length =
                    length.ok_or_else(|| MessageError::ContentLength { value: value() })?;
                content_length = Some(length);
            }
            _ => {}
        }
    }
    Ok(content_length)
}

/// `tchar` without upper case. <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2>
const fn is_lower_token(octet: u8) -> bool {
    matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*'
        | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn printable(octets: &[u8]) -> String {
    octets.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.example")];

    fn get(extra: &[(&str, &str)]) -> FieldList {
        GET.iter().chain(extra).copied().collect()
    }

    #[test]
    fn well_formed_messages_tell_their_length() {
        let info = RequestInfo { is_head: false, content_length: Some(12) };
        assert_eq!(check_request(&get(&[("content-length", "12"), ("te", "trailers")])), Ok(info));
        let connect = FieldList::new().with(":method", "CONNECT").with(":authority", "a:1");
        assert!(check_request(&connect).is_ok());
        let response = FieldList::new().with(":status", "204");
        let info = ResponseInfo { status: 204, content_length: None };
        assert_eq!(check_response(&response), Ok(info));
    }

    #[test]
    fn malformed_requests_are_named() {
        let name = |name: &str| name.to_owned();
        for (fields, error) in [
            (get(&[("A", "")]), MessageError::Name { name: name("A") }),
            (get(&[("", "")]), MessageError::Name { name: name("") }),
            (get(&[("a b", "")]), MessageError::Name { name: name("a b") }),
            (get(&[("a", "b\r\nc: d")]), MessageError::Value { name: name("a") }),
            (
                get(&[("upgrade", "h2c")]),
                MessageError::ConnectionSpecific { name: name("upgrade") },
            ),
            (get(&[("te", "gzip")]), MessageError::ConnectionSpecific { name: name("te") }),
            (get(&[(":status", "200")]), MessageError::UnexpectedPseudo { name: name(":status") }),
            (get(&[(":path", "/")]), MessageError::RepeatedPseudo { name: ":path" }),
            (
                get(&[("a", "b"), (":path", "/")]),
                MessageError::MisplacedPseudo { name: name(":path") },
            ),
            (get(&[("content-length", "1x")]), MessageError::ContentLength { value: name("1x") }),
            (
                get(&[("content-length", "1"), ("content-length", "2")]),
                MessageError::ContentLength { value: name("2") },
            ),
            (
                get(&[("content-length", "18446744073709551616")]),
                MessageError::ContentLength { value: name("18446744073709551616") },
            ),
            (FieldList::new(), MessageError::MissingPseudo { name: ":method" }),
            (
                GET[..2].iter().copied().chain([(":path", "")]).collect(),
                MessageError::MissingPseudo { name: ":path" },
            ),
            (
                [(":method", "CONNECT"), (":path", "/")].into_iter().collect(),
                MessageError::UnexpectedPseudo { name: name(":path") },
            ),
        ] {
            assert_eq!(check_request(&fields), Err(error));
        }
    }

    #[test]
    fn a_status_has_three_digits() {
        for value in ["", "99", "20x", "0200", "1000", "099"] {
            assert!(check_response(&FieldList::new().with(":status", value)).is_err(), "{value}");
        }
    }
}
