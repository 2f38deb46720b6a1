//! Tells the command what it is built from: the commit, the profile, and hashes of all sources that decide
//! results. The variable `QUIPU_COMMIT` comes first, for packagers.

fn main() -> std::io::Result<()> {
    quipu_build::emit(&["quipu-study", "quipu-learned"])
}
