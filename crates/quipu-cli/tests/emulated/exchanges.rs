//! What exchanges cost over emulated links, as `quipu agree --host here` measures it.

use tempfile::TempDir;

use super::{LINKS, may_emulate, output, quipu, succeeds_unless_void, text};

#[test]
fn exchanges_are_measured_and_are_no_part_of_results() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("agree");
    let mut command = quipu();
    command.args(["agree", "--page", "dojo-demo", "--stream", "fifo", "--runs", "1"]).args(LINKS);
    let ended = output(command.args(["--host", "here", "--out"]).arg(&out));
    if !succeeds_unless_void(&ended, &out.join("emulated")) {
        return;
    }
    let told = text(&ended.stderr);
    let measured = told.contains("a request and its response take ");
    assert!(measured || told.contains("all loads that measure exchanges were void"), "{told}");
    let scenario = std::fs::read_to_string(out.join("costs/scenario.toml")).expect("a scenario");
    assert!(scenario.contains("wake="), "{scenario}");
    let file = out.join("emulated/emulation.jsonl");
    let lines = std::fs::read_to_string(file).expect("what the emulator says");
    assert!(lines.lines().all(|line| line.contains("\"page\":\"dojo-demo\"")), "{lines}");
}
