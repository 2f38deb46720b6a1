//! <https://www.rfc-editor.org/rfc/rfc9204#appendix-B>

use super::*;

const AUTHORITY: (&str, &str) = (":authority", "www.example.com");
const CUSTOM: (&str, &str) = ("custom-key", "custom-value");

/// Entries of a table, oldest first, and its size.
fn content(decoder: &Decoder) -> (FieldList, u64) {
    let table = decoder.table_for_test();
    let entries = (0..table.len()).rev().filter_map(|age| table.get(age)).collect();
    (entries, table.size())
}

#[test]
fn the_exchange_of_the_rfc_is_decoded() {
    let mut decoder = Decoder::new(220, 16, NO_LIMIT);
    // B.1: literal field line with name reference.
    let section = octets("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(decoded(&mut decoder, 0, &section), Ok(list(&[(":path", "/index.html")])));
    assert_eq!(decoder.take_instructions(), None);
    // B.2: dynamic table. The section may come first.
    let section = octets("0381 10 11");
    assert_eq!(outcome(&mut decoder, 4, &section), Ok(Outcome::Blocked));
    let instructions = octets(
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
    );
    decoder.on_encoder_stream(&instructions).unwrap();
    assert_eq!(decoder.poll_unblocked(), Some(StreamId(4)));
    let sample = (":path", "/sample/path");
    assert_eq!(content(&decoder), (list(&[AUTHORITY, sample]), 106));
    assert_eq!(decoded(&mut decoder, 4, &section), Ok(list(&[AUTHORITY, sample])));
    assert_eq!(decoder.take_instructions().as_deref(), Some(&[0x84][..]));
    // B.3: speculative insert.
    let instructions = octets("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565");
    decoder.on_encoder_stream(&instructions).unwrap();
    assert_eq!(content(&decoder), (list(&[AUTHORITY, sample, CUSTOM]), 160));
    assert_eq!(decoder.take_instructions().as_deref(), Some(&[0x01][..]));
    // B.4: the duplicate comes after the stream has been cancelled.
    let section = octets("0500 80 c1 81");
    assert_eq!(outcome(&mut decoder, 8, &section), Ok(Outcome::Blocked));
    decoder.cancel(StreamId(8));
    assert_eq!(decoder.take_instructions().as_deref(), Some(&[0x48][..]));
    decoder.on_encoder_stream(&[0x02]).unwrap();
    assert_eq!(content(&decoder), (list(&[AUTHORITY, sample, CUSTOM, AUTHORITY]), 217));
    assert_eq!(decoded(&mut decoder, 12, &section), Ok(list(&[AUTHORITY, (":path", "/"), CUSTOM])));
    // B.5: insertion and eviction.
    let instructions = octets("810d 6375 7374 6f6d 2d76 616c 7565 32");
    decoder.on_encoder_stream(&instructions).unwrap();
    let second = ("custom-key", "custom-value2");
    assert_eq!(content(&decoder), (list(&[sample, CUSTOM, AUTHORITY, second]), 215));
}

/// The steps of the RFC with the choices of our encoder: it does not insert paths, and takes Huffman
/// code, here as in <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.4>.
#[test]
fn the_exchange_is_encoded_as_in_the_rfc() {
    let mut encoder = Encoder::new(4096);
    encoder.on_peer_settings(220, 16);
    assert_eq!(encoder.take_instructions().as_deref(), Some(&octets("3fbd01")[..]));
    // B.1.
    let section = encoded(&mut encoder, 0, &list(&[(":path", "/index.html")]));
    assert_eq!(section, octets("0000 5188 60d5 485f 2bce 9a68"));
    // B.2, with the field of B.3.
    assert_eq!(encoded(&mut encoder, 4, &list(&[AUTHORITY, CUSTOM])), octets("0381 10 11"));
    let instructions = octets(
        "c08c f1e3 c2e5 f23a 6ba0 ab90 f4ff 6825 a849 e95b a97d 7f89 25a8 49e9 5bb8 e8b4 bf",
    );
    assert_eq!(encoder.take_instructions().as_deref(), Some(&instructions[..]));
    assert_eq!(encoder.outstanding_for_test(), 1);
    encoder.on_decoder_stream(&[0x84]).unwrap();
    assert_eq!(encoder.outstanding_for_test(), 0);
    // B.4, the section, and its cancellation.
    let fields = list(&[CUSTOM, (":path", "/"), AUTHORITY]);
    assert_eq!(encoded(&mut encoder, 8, &fields), octets("0300 80 c1 81"));
    assert_eq!(encoder.outstanding_for_test(), 1);
    encoder.on_decoder_stream(&[0x48]).unwrap();
    assert_eq!(encoder.outstanding_for_test(), 0);
    // B.5, an insertion with a name of the dynamic table, and the increment of B.3.
    let section = encoded(&mut encoder, 12, &list(&[("custom-key", "custom-value2")]));
    assert_eq!(section, octets("0480 10"));
    let instructions = encoder.take_instructions().unwrap();
    assert_eq!(instructions[..2], [0x80, 0x89]);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    // B.4, the duplicate: the last quarter of the table begins with the first entry.
    assert_eq!(encoded(&mut encoder, 16, &list(&[AUTHORITY])), octets("0580 10"));
    assert_eq!(encoder.take_instructions().as_deref(), Some(&[0x02][..]));
}
