//! LinUCB: a linear model of the reward of each action, with confidence bounds.
//!
//! Source: Li et al., "A contextual-bandit approach to personalized news article recommendation",
//! WWW 2010, algorithm 1 (disjoint models).

/// Numbers in a context.
pub(super) const DIMENSION: usize = 6;

/// What a decision saw, each number in 0..=1.
pub(super) type Context = [f64; DIMENSION];

/// The model of one action: ridge regression of rewards on contexts.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The inverse of `A = I + Σ x·xᵀ`, kept so by the formula of Sherman and Morrison. Symmetric.
    inverse: [Context; DIMENSION],
    /// `b = Σ reward·x`.
    sum: Context,
}

impl Model {
    pub(super) fn new() -> Self {
        let mut inverse = [[0.0; DIMENSION]; DIMENSION];
        for (index, row) in inverse.iter_mut().enumerate() {
            row[index] = 1.0;
        }
        Model { inverse, sum: [0.0; DIMENSION] }
    }

    /// The reward expected, and `alpha` standard deviations more.
    pub(super) fn upper_bound(&self, context: &Context, alpha: f64) -> f64 {
        let spread = self.applied(context);
        // θ·x = (A⁻¹·b)·x = b·(A⁻¹·x), as A is symmetric.
        dot(&self.sum, &spread) + alpha * dot(context, &spread).max(0.0).sqrt()
    }

    /// Learns a reward. What was learned before weighs `discount` as much as before, though never
    /// less than nothing: uncertainty grows to that of the beginning at most.
    pub(super) fn learn(&mut self, context: &Context, reward: f64, discount: f64) {
        self.forget(discount);
        let spread = self.applied(context);
        let scale = 1.0 / (1.0 + dot(context, &spread));
        for (row, left) in self.inverse.iter_mut().zip(spread) {
            for (entry, right) in row.iter_mut().zip(spread) {
                *entry -= left * right * scale;
            }
        }
        for (sum, x) in self.sum.iter_mut().zip(context) {
            *sum += reward * x;
        }
    }

    fn forget(&mut self, discount: f64) {
        let uncertain = (0..DIMENSION).map(|index| self.inverse[index][index]).fold(0.0, f64::max);
        let kept = discount.max(uncertain).min(1.0);
        if kept >= 1.0 {
            return;
        }
        self.inverse.as_flattened_mut().iter_mut().for_each(|entry| *entry /= kept);
        self.sum.iter_mut().for_each(|sum| *sum *= kept);
    }

    /// `A⁻¹·x`.
    fn applied(&self, context: &Context) -> Context {
        std::array::from_fn(|row| dot(&self.inverse[row], context))
    }
}

fn dot(left: &Context, right: &Context) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Solves `A·y = x` by elimination.
    fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        let size = right.len();
        for column in 0..size {
            for row in column + 1..size {
                let factor = matrix[row][column] / matrix[column][column];
                let above = matrix[column].clone();
                for (entry, above) in matrix[row].iter_mut().zip(&above) {
                    *entry -= factor * above;
                }
                right[row] -= factor * right[column];
            }
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|index| matrix[row][index] * right[index]).sum();
            right[row] = (right[row] - known) / matrix[row][row];
        }
        right
    }

    fn context() -> impl Strategy<Value = Context> {
        prop::array::uniform6(0.0..=1.0f64)
    }

    proptest! {
        #[test]
        fn the_bound_is_that_of_a_regression_solved_anew(
            learned in prop::collection::vec((context(), 0.0..=1.0f64), 0..40),
            asked in context(),
        ) {
            let mut model = Model::new();
            let mut matrix = vec![vec![0.0; DIMENSION]; DIMENSION];
            (0..DIMENSION).for_each(|index| matrix[index][index] = 1.0);
            let mut sum = vec![0.0; DIMENSION];
            for (context, reward) in &learned {
                model.learn(context, *reward, 1.0);
                for row in 0..DIMENSION {
                    (0..DIMENSION).for_each(|c| matrix[row][c] += context[row] * context[c]);
                    sum[row] += reward * context[row];
                }
            }
            let theta = solve(matrix.clone(), sum);
            let spread = solve(matrix, asked.to_vec());
            let inner = |left: &[f64]| left.iter().zip(asked).map(|(l, r)| l * r).sum::<f64>();
            let expected = inner(&theta) + 0.75 * inner(&spread).max(0.0).sqrt();
            let bound = model.upper_bound(&asked, 0.75);
            prop_assert!((bound - expected).abs() < 1e-9, "{bound}, not {expected}");
        }

        #[test]
        fn forgetting_never_makes_it_less_certain_than_at_the_beginning(
            learned in prop::collection::vec((context(), 0.0..=1.0f64), 0..200),
            asked in context(),
        ) {
            let mut model = Model::new();
            for (context, reward) in &learned {
                model.learn(context, *reward, 0.5);
            }
            let uncertain = model.upper_bound(&asked, 1.0) - model.upper_bound(&asked, 0.0);
            // A⁻¹ is positive with no diagonal entry above 1, so its greatest eigenvalue is at
            // most its trace.
            prop_assert!(uncertain <= (6.0 * dot(&asked, &asked)).sqrt() + 1e-9);
            prop_assert!(model.inverse.as_flattened().iter().all(|entry| entry.is_finite()));
        }
    }

    #[test]
    fn it_learns_what_an_action_is_worth_and_the_bound_closes() {
        let mut model = Model::new();
        let context = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(model.upper_bound(&context, 0.75), 0.75);
        for _ in 0..999 {
            model.learn(&context, 0.5, 1.0);
        }
        // A = 1,000 and b = 499.5 in this direction.
        assert!((model.upper_bound(&context, 0.0) - 0.4995).abs() < 1e-9);
        let bound = 0.4995 + 0.75 / 1_000f64.sqrt();
        assert!((model.upper_bound(&context, 0.75) - bound).abs() < 1e-9);
    }

    #[test]
    fn with_a_discount_the_newest_rewards_count_more() {
        let context = [0.5; DIMENSION];
        let worth = |discount: f64| {
            let mut model = Model::new();
            (0..200).for_each(|_| model.learn(&context, 1.0, discount));
            (0..50).for_each(|_| model.learn(&context, 0.0, discount));
            model.upper_bound(&context, 0.0)
        };
        assert!(worth(0.9) < worth(1.0), "{} and {}", worth(0.9), worth(1.0));
    }
}
