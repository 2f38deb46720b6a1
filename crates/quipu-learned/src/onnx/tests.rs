use super::*;

/// A field of a protobuf message that is a message, text or bytes.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend_from_slice(bytes);
    field
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// A model of one operator on `x` and, if it takes one, a matrix `w` of these columns. Dimension 0 has a name.
fn model(operator: &str, columns: &[f32], (kind, first, length): (u8, u8, u8)) -> Vec<u8> {
    let dim = |value: u8| match value {
        0 => part(1, &part(2, b"batch")),
        _ => part(1, &number(1, value)),
    };
    let value = |name: &[u8], kind: u8, dims: [u8; 2]| {
        let tensor = [number(1, kind), part(2, &dims.map(dim).concat())].concat();
        [part(1, name), part(2, &part(1, &tensor))].concat()
    };
    let rows: Vec<u8> =
        (0..length).flat_map(|_| columns).flat_map(|weight| weight.to_le_bytes()).collect();
    let matrix = [
        number(1, length),
        number(1, columns.len() as u8),
        number(2, 1),
        part(8, b"w"),
        part(9, &rows),
    ];
    let mut node = part(1, b"x");
    if operator == "MatMul" {
        node.extend(part(1, b"w"));
    }
    node.extend([part(2, b"y"), part(4, operator.as_bytes())].concat());
    let graph = [
        part(1, &node),
        part(2, b"g"),
        part(5, &matrix.concat()),
        part(11, &value(b"x", kind, [first, length])),
        part(12, &value(b"y", kind, [first, columns.len() as u8])),
    ];
    [number(1, 8), part(7, &graph.concat()), part(8, &number(2, 13))].concat()
}

const FLOAT: u8 = 1;
const DOUBLE: u8 = 11;

fn error(bytes: &[u8]) -> String {
    Network::read(bytes).unwrap_err().to_string()
}

#[test]
fn scores_are_the_output_of_the_model() {
    for first in [0, 1] {
        let network =
            Network::read(&model("MatMul", &[1.0, 2.0, -1.0, 0.5], (FLOAT, first, 44))).unwrap();
        let mut numbers = [0.0; LENGTH];
        numbers[5] = 2.0;
        assert_eq!(network.scores(&numbers), Some([2.0, 4.0, -2.0, 1.0]));
    }
}

#[test]
fn a_model_that_does_not_fit_says_what_was_expected() {
    let input = error(&model("MatMul", &[1.0; 4], (FLOAT, 0, 10)));
    assert!(input.starts_with("the model's input is "), "{input}");
    assert!(input.contains("10") && input.contains("expected float32 of shape [1, 44]"), "{input}");
    let batch = error(&model("MatMul", &[1.0; 4], (FLOAT, 3, 44)));
    assert!(batch.contains("expected float32 of shape [1, 44]"), "{batch}");
    let double = error(&model("Relu", &[1.0; 4], (DOUBLE, 1, 44)));
    assert!(double.contains("expected float32"), "{double}");
    let output = error(&model("MatMul", &[1.0; 3], (FLOAT, 0, 44)));
    assert!(output.starts_with("the model's output is "), "{output}");
    assert!(output.contains("expected float32 of shape [1, 4]"), "{output}");
}

#[test]
fn a_model_that_draws_is_refused() {
    let text = error(&model("RandomUniformLike", &[1.0; 4], (FLOAT, 1, 44)));
    assert!(text.contains("RandomUniformLike"), "{text}");
}

#[test]
fn damaged_files_are_errors() {
    let whole = model("MatMul", &[1.0; 4], (FLOAT, 0, 44));
    // The last four bytes say which version of the operators is meant, and have a default.
    for length in 0..whole.len() - 4 {
        assert!(error(&whole[..length]).contains("expected"));
    }
    assert!(error(&model("NoSuchThing", &[1.0; 4], (FLOAT, 1, 44))).contains("expected an ONNX"));
}
