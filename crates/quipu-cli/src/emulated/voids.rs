//! Loads that do not count, as the emulator was late: they are made again, and given up in the end.

/// How often a load is made that is void, with the first time. Our choice.
const ATTEMPTS: u32 = 3;

/// So many loads, the first ones of a command, that are all void [`ATTEMPTS`] times are the last that are made. Our choice.
const MOST: u32 = 12;

/// The loads of a command that were void each time.
#[derive(Debug, Default)]
pub(super) struct Voids {
    loads: u32,
    /// Whether any load counted.
    any_counts: bool,
}

impl Voids {
    /// What a load gave that is made by `attempt`, which is told its number from 1 on and returns why the load is void, if
    /// it is. It is made again while it is void. `tell` is given what the user should know at once.
    ///
    /// # Errors
    /// What the load failed of, or why it does not count; at once if no load would.
    pub(super) fn counted<T>(
        &mut self,
        mut attempt: impl FnMut(u32) -> Result<(Vec<String>, Result<T, String>), String>,
        tell: impl FnOnce(&str),
    ) -> Result<T, String> {
        if self.loads >= MOST && !self.any_counts {
            return Err(format!("not made, as the first {MOST} loads were all void"));
        }
        let mut number = 1;
        let (void, result) = loop {
            let (void, result) = attempt(number)?;
            if void.is_empty() {
                self.any_counts = true;
                return result;
            }
            // What fails on a host that is too busy says nothing either.
            if number == ATTEMPTS {
                break (void.join("; "), result);
            }
            number += 1;
        };
        self.loads += 1;
        let reason = format!("void {ATTEMPTS} times: {void}");
        if self.loads == 1 {
            tell(&format!(
                "a load was {reason}; such loads do not count, and none is made any more if the first {MOST} are void"
            ));
        }
        Err(match result {
            Ok(_) => reason,
            Err(error) => format!("{reason}; {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a load that is void the first `void` times, how often it was made, and what the user was told.
    fn load(
        voids: &mut Voids,
        void: u32,
        result: Result<u8, &str>,
    ) -> (Result<u8, String>, u32, String) {
        let (mut made, mut told) = (0, String::new());
        let attempt = |number| {
            made = number;
            let reasons = if number <= void {
                vec!["late".to_owned(), "full".to_owned()]
            } else {
                Vec::new()
            };
            Ok((reasons, result.map_err(str::to_owned)))
        };
        let outcome = voids.counted(attempt, |text| told = text.to_owned());
        (outcome, made, told)
    }

    #[test]
    fn a_load_is_made_until_it_counts_and_three_times_at_most() {
        let mut voids = Voids::default();
        assert_eq!(load(&mut voids, 0, Ok(7)), (Ok(7), 1, String::new()));
        assert_eq!(load(&mut voids, 2, Ok(7)), (Ok(7), 3, String::new()));
        let (outcome, made, told) = load(&mut voids, 3, Ok(7));
        assert_eq!((outcome, made), (Err("void 3 times: late; full".to_owned()), 3));
        assert!(told.contains("a load was void 3 times: late; full"), "{told}");
        let again = load(&mut voids, 3, Err("timeout"));
        assert_eq!(again, (Err("void 3 times: late; full; timeout".to_owned()), 3, String::new()));
    }

    #[test]
    fn a_load_that_fails_in_time_is_not_made_again() {
        let failed = load(&mut Voids::default(), 0, Err("timeout"));
        assert_eq!(failed, (Err("timeout".to_owned()), 1, String::new()));
        assert_eq!(load(&mut Voids::default(), 1, Err("timeout")).1, 2);
    }

    #[test]
    fn no_load_is_made_after_a_dozen_void_ones_unless_one_counted() {
        let mut voids = Voids::default();
        for _ in 0..12 {
            assert_eq!(load(&mut voids, 3, Ok(7)).1, 3);
        }
        let none = "not made, as the first 12 loads were all void".to_owned();
        assert_eq!(load(&mut voids, 0, Ok(7)), (Err(none), 0, String::new()));

        let mut voids = Voids::default();
        load(&mut voids, 0, Ok(7)).0.unwrap();
        for _ in 0..13 {
            assert_eq!(load(&mut voids, 3, Ok(7)).1, 3);
        }
        assert_eq!(load(&mut voids, 0, Ok(7)).0, Ok(7));
    }

    #[test]
    fn what_cannot_be_attempted_is_told_as_it_is() {
        let outcome = Voids::default().counted::<u8>(|_| Err("no hosts".to_owned()), |_| ());
        assert_eq!(outcome, Err("no hosts".to_owned()));
    }
}
