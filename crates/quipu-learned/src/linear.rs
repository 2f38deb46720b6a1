//! Linear policies: a score for each place, which is a sum of weighted numbers.
//!
//! Weights, biases and numbers are `f32`. A score is summed up in `f64`, from the bias on, in the order of the numbers.
//! The product of two `f32` is exact in `f64`, so the same loop in any language gives the same score to the last bit,
//! with or without fused operations. Sums in another order, such as those of a matrix product in `f64`, differ by about
//! 1e-15 of their terms: they decide the same but where two scores are that close.

use serde::Deserialize;
use thiserror::Error;

use crate::observation::{LENGTH, PLACES, names};
use crate::score::Score;

/// A policy whose scores are linear in the numbers of an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    weights: [[f32; LENGTH]; PLACES],
    bias: [f32; PLACES],
}

/// What is wrong with the file of a linear policy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinearError {
    /// It is no JSON, or has other fields.
    #[error("{0}; expected a JSON object with names, weights and bias")]
    Json(#[from] serde_json::Error),
    /// It was made for another observation.
    #[error(
        "names[{index}]: {found}: expected `{expected}`, the name of that number of an observation"
    )]
    Name {
        /// The first that differs.
        index: usize,
        /// The name given, in quotes; `nothing` behind the last.
        found: String,
        /// The observation's name.
        expected: String,
    },
    /// A list is too short or too long.
    #[error("{field}: {found} items: expected {expected}")]
    Length {
        /// Which.
        field: String,
        /// Its length.
        found: usize,
        /// What was expected.
        expected: String,
    },
    /// A number is too large.
    #[error("{field}: {found}: expected a number that fits float32")]
    Number {
        /// Which.
        field: String,
        /// Its value.
        found: f64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    names: Vec<String>,
    weights: Vec<Vec<f64>>,
    bias: Vec<f64>,
}

impl Linear {
    /// The policy of these weights and biases, one row and one bias for each place.
    pub fn new(weights: [[f32; LENGTH]; PLACES], bias: [f32; PLACES]) -> Linear {
        Linear { weights, bias }
    }

    /// Reads a JSON object: `names`, which are those of the observation, a row of `weights` for each place, and a `bias`
    /// for each place. Numbers are rounded to `f32`.
    ///
    /// # Errors
    /// See [`LinearError`].
    pub fn read(json: &[u8]) -> Result<Linear, LinearError> {
        let form: Form = serde_json::from_slice(json)?;
        check_names(&form.names)?;
        let of_places = |field: &str, found: usize| {
            let expected = format!("{PLACES}, one for each place");
            let error = LinearError::Length { field: field.to_owned(), found, expected };
            if found == PLACES { Ok(()) } else { Err(error) }
        };
        of_places("weights", form.weights.len())?;
        of_places("bias", form.bias.len())?;
        let mut linear = Linear { weights: [[0.0; LENGTH]; PLACES], bias: [0.0; PLACES] };
        for (place, (row, given)) in linear.weights.iter_mut().zip(&form.weights).enumerate() {
            if given.len() != LENGTH {
                let field = format!("weights[{place}]");
                let expected = format!("{LENGTH}, one for each number of an observation");
                return Err(LinearError::Length { field, found: given.len(), expected });
            }
            for (index, (weight, given)) in row.iter_mut().zip(given).enumerate() {
                *weight = single(*given, || format!("weights[{place}][{index}]"))?;
            }
        }
        for (place, (bias, given)) in linear.bias.iter_mut().zip(&form.bias).enumerate() {
            *bias = single(*given, || format!("bias[{place}]"))?;
        }
        Ok(linear)
    }
}

fn check_names(given: &[String]) -> Result<(), LinearError> {
    for (index, expected) in names().into_iter().enumerate() {
        let found = given.get(index);
        if found != Some(&expected) {
            let found = found.map_or_else(|| "nothing".to_owned(), |name| format!("`{name}`"));
            return Err(LinearError::Name { index, found, expected });
        }
    }
    if given.len() == LENGTH {
        return Ok(());
    }
    let (field, expected) = ("names".to_owned(), LENGTH.to_string());
    Err(LinearError::Length { field, found: given.len(), expected })
}

fn single(number: f64, field: impl Fn() -> String) -> Result<f32, LinearError> {
    let rounded = number as f32;
    match rounded.is_finite() {
        true => Ok(rounded),
        false => Err(LinearError::Number { field: field(), found: number }),
    }
}

impl Score for Linear {
    fn scores(&self, numbers: &[f32; LENGTH]) -> Option<[f64; PLACES]> {
        let mut scores = self.bias.map(f64::from);
        for (score, weights) in scores.iter_mut().zip(&self.weights) {
            for (weight, number) in weights.iter().zip(numbers) {
                *score += f64::from(*weight) * f64::from(*number);
            }
        }
        Some(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let mut value = serde_json::json!({
            "names": names(),
            "weights": vec![vec![0.5; LENGTH]; PLACES],
            "bias": vec![0.0; PLACES],
        });
        change(&mut value);
        value.to_string().into_bytes()
    }

    fn error(change: impl FnOnce(&mut serde_json::Value)) -> String {
        Linear::read(&json(change)).unwrap_err().to_string()
    }

    #[test]
    fn scores_are_bias_and_weighted_numbers() {
        let linear = Linear::read(&json(|it| {
            it["weights"][1][2] = 3.0.into();
            it["bias"][1] = 1.0.into();
        }));
        let mut numbers = [0.0; LENGTH];
        numbers[2] = 2.0;
        assert_eq!(linear.unwrap().scores(&numbers), Some([1.0, 7.0, 1.0, 1.0]));
    }

    #[test]
    fn sums_are_in_the_order_of_the_numbers() {
        let mut weights = [[0.0; LENGTH]; PLACES];
        // Where 1 stands between the large terms, it is lost.
        for (row, at) in weights.iter_mut().zip([[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]]) {
            for (index, weight) in at.into_iter().zip([1e20, 1.0, -1e20]) {
                row[index] = weight;
            }
        }
        let scores = Linear::new(weights, [0.0; PLACES]).scores(&[1.0; LENGTH]);
        assert_eq!(scores, Some([0.0, 0.0, 1.0, 1.0]));
    }

    #[test]
    fn a_file_that_does_not_fit_says_where() {
        assert_eq!(
            error(|it| it["names"][3] = "path0.rtt".into()),
            "names[3]: `path0.rtt`: expected `path0.rttvar_100ms`, the name of that number of an observation"
        );
        assert_eq!(
            error(|it| drop(it["names"].as_array_mut().unwrap().pop())),
            "names[43]: nothing: expected `ready_10`, the name of that number of an observation"
        );
        let more = error(|it| it["names"].as_array_mut().unwrap().push("more".into()));
        assert_eq!(more, "names: 45 items: expected 44");
        let rows = error(|it| drop(it["weights"].as_array_mut().unwrap().pop()));
        assert_eq!(rows, "weights: 3 items: expected 4, one for each place");
        let row = error(|it| drop(it["weights"][1].as_array_mut().unwrap().pop()));
        assert!(row.starts_with("weights[1]: 43 items: expected 44"), "{row}");
        let large = error(|it| it["weights"][0][7] = 1e39.into());
        assert!(large.starts_with("weights[0][7]: 1"), "{large}");
        assert!(large.ends_with("expected a number that fits float32"), "{large}");
        let unknown = error(|it| it["biases"] = 1.into());
        assert!(unknown.contains("unknown field `biases`"), "{unknown}");
        assert!(Linear::read(b"\xff").is_err());
    }
}
