//! The fields of `[experiment]`: what is claimed of the results, which [`crate::experiment`] reads.

use super::fields::{or, required};
use super::text::*;
use super::{Kind, Table};
use quipu_record::verdict::{Paper, RuleKind, Verdict};

/// A scenario with an experiment that has one of everything.
const ONE: &str = "[experiment]\nid = \"a\"\npaper = \"quipu\"\ntitle = \"t\"\nquick = { runs = 3 }\n\
    variants = [{ name = \"v\" }]\n[[experiment.rules]]\nname = \"r\"\nclaim = \"c\"\n\
    metric = { name = \"page\" }\nof = { policy = \"p\" }\nvalue = \"< 1s\"\n\
    [[experiment.data]]\nmetric = \"page\"\nvalues = [{ policy = \"p\", mean = \"1s\" }]\n";

/// Names.
const NAMES: Kind = Kind::List(&Kind::Text(&NAME), 0, usize::MAX);
/// Fields that change: a table, or a list of assignments.
const SETTINGS: Kind =
    Kind::Either(&[Kind::Map(&Kind::Any), Kind::List(&Kind::Text(&ASSIGNMENT), 0, usize::MAX)]);
/// A metric by name or described.
const A_METRIC: Kind = Kind::Either(&[Kind::Text(&NAME), Kind::Table(&METRIC)]);
/// Which runs: a label, a table, or a list of these.
const SIDES: Kind = Kind::Either(&[Kind::Text(&NAME), Kind::Table(&SIDE), SIDE_LIST]);
const SIDE_LIST: Kind =
    Kind::List(&Kind::Either(&[Kind::Text(&NAME), Kind::Table(&SIDE)]), 0, usize::MAX);
/// A path or a flow.
const NAMED: Kind = Kind::Text(&PATH_NAME);

pub(super) static EXPERIMENT: Table = Table {
    title: "Experiment",
    about: "What is claimed of the results, for `quipu reproduce`: one id, or several of the same \
            form. [reproduce.md](reproduce.md) explains it. Plays no part in runs, and is not written \
            out with their results.",
    needs: &[],
    minimal: (ONE, "experiment"),
    fields: &[
        required(
            "id",
            Kind::Text(&NAME),
            "Its id; `{axis}` stands for the name of the value that an axis has.",
        ),
        required(
            "paper",
            Kind::Words(|| Paper::ALL.iter().map(|paper| paper.name()).collect()),
            "Where it comes from.",
        ),
        or("figure", Kind::Text(&ANY), "none", "Figure or table there."),
        required("title", Kind::Text(&ANY), "What it shows."),
        or("reported", Kind::Text(&ANY), "none", "What the paper says."),
        or("note", Kind::Text(&ANY), "none", "What is reconstruction."),
        or(
            "vary",
            Kind::Map(&Kind::List(
                &Kind::Either(&[Kind::Text(&NAME), Kind::Map(&Kind::Any)]),
                0,
                usize::MAX,
            )),
            "none",
            "Values of each axis; each combination is an id. A value is a name, or a table with `name`, \
             `value`, `set` and words of its own.",
        ),
        or("quick", Kind::Table(&QUICK), "3 runs", "What a quick run changes."),
        or(
            "variants",
            Kind::List(&Kind::Table(&VARIANT), 0, usize::MAX),
            "none",
            "Changed scenarios, whose runs rules compare with the main ones.",
        ),
        or(
            "rules",
            Kind::List(&Kind::Table(&RULE), 0, usize::MAX),
            "there must be one",
            "When it counts as shown.",
        ),
        or("data", Kind::List(&Kind::Table(&DATA), 0, usize::MAX), "none", "The paper's numbers."),
    ],
};

static QUICK: Table = Table {
    title: "Quick",
    about: "What a quick run changes.",
    needs: &[],
    minimal: (ONE, "experiment.quick"),
    fields: &[
        or("runs", Kind::Whole(0, u32::MAX as u64), "3", "Runs at most."),
        or("set", SETTINGS, "none", "Fields that change."),
    ],
};

static VARIANT: Table = Table {
    title: "Variant",
    about: "A changed scenario.",
    needs: &[],
    minimal: (ONE, "experiment.variants[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What rules and result folders call it."),
        or("set", SETTINGS, "none", "Fields that change."),
        or("pages", NAMES, "all", "Only these pages of the scenario."),
        or("networks", NAMES, "all", "Only these networks of the scenario."),
    ],
};

static RULE: Table = Table {
    title: "Rule",
    about: "When a claim counts as shown. Exactly one is needed of `value`, `ratio`, `difference` and \
            `within`.",
    needs: &[&["value", "ratio", "difference", "within"]],
    minimal: (ONE, "experiment.rules[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "Its name, unlike those of the other rules."),
        required("claim", Kind::Text(&ANY), "The direction, in words."),
        or(
            "kind",
            Kind::Words(|| RuleKind::ALL.iter().map(|kind| kind.name()).collect()),
            "`claim`",
            "What it is for: a direction that must hold, what a paper says, what separates two effects, \
             or what shows a reason.",
        ),
        or("reported", Kind::Text(&ANY), "none", "The paper's numbers."),
        required("metric", A_METRIC, "What is looked at."),
        or("of", SIDES, "every policy", "What is compared: one comparison for each."),
        or("to", SIDES, "none", "With what; `others`: every other policy of the place."),
        or(
            "steps",
            SIDE_LIST,
            "none",
            "Instead of `of` and `to`: each of these with the one before it.",
        ),
        or(
            "beside",
            Kind::Table(&SIDE),
            "none",
            "The ratio is compared with the same ratio there.",
        ),
        or("value", Kind::Text(&THRESHOLD), "none", "What the number itself must be."),
        or("ratio", Kind::Text(&THRESHOLD), "none", "What its ratio to the other one must be."),
        or(
            "difference",
            Kind::Text(&THRESHOLD),
            "none",
            "What it less the other one must be, with a unit.",
        ),
        or("within", Kind::Number(0.0, 1e9), "none", "How far the ratio may be from 1."),
        or(
            "over",
            Kind::Text(&NAME),
            "`median`",
            "Of `value`: which number out of all runs, `median`, `mean`, `min`, `max`, `p0` to `p100`.",
        ),
        or("pages", NAMES, "all", "Only these pages."),
        or("networks", NAMES, "all", "Only these networks."),
        or("policies", NAMES, "all", "Only these policies."),
        or(
            "where",
            Kind::Words(|| {
                quipu_record::verdict::Places::ALL.iter().map(|place| place.name()).collect()
            }),
            "`all`",
            "In how many places it must hold.",
        ),
        or(
            "expect",
            Kind::Words(|| Verdict::ALL.iter().map(|verdict| verdict.name()).collect()),
            "`holds`",
            "What is known to come out; what is expected to fail needs `because`.",
        ),
        or("because", Kind::Text(&ANY), "none", "Why it does not hold, if it does not."),
        or("ablation", Kind::Text(&NAME), "none", "The rule that shows that reason."),
        or("only", Kind::Map(&NAMES), "all", "Ids that have it: values of axes."),
    ],
};

static SIDE: Table = Table {
    title: "Side",
    about: "Which runs: what is not said is as in the place at hand.",
    needs: &[],
    minimal: (ONE, "experiment.rules[0].of"),
    fields: &[
        or("policy", Kind::Text(&NAME), "any", "Label of the policy, as tables show it."),
        or("network", Kind::Text(&NAME), "any", "Name of the network."),
        or("page", Kind::Text(&NAME), "any", "Name of the page."),
        or(
            "variant",
            Kind::Text(&NAME),
            "`main`",
            "Name of the variant; `main` is the scenario itself.",
        ),
        or("metric", A_METRIC, "that of the rule", "Another metric than that of the rule."),
    ],
};

static METRIC: Table = Table {
    title: "Metric",
    about: "What a rule looks at. [reproduce.md](reproduce.md#metrics) tells which of these each \
            metric has.",
    needs: &[&["name"]],
    minimal: (ONE, "experiment.rules[0].metric"),
    fields: &[
        or("name", Kind::Text(&NAME), "must be there", "What is measured."),
        or(
            "stat",
            Kind::Text(&NAME),
            "as the metric",
            "One number out of several of a run, such as `mean`, `p95` or `first`.",
        ),
        or("pooled", Kind::Flag, "false", "Objects of all runs together."),
        or("kind", Kind::Text(&NAME), "all", "Only objects of this kind."),
        or(
            "url",
            Kind::Text(&NAME),
            "all",
            "Only objects whose address this matches; `*` stands for anything.",
        ),
        or(
            "index",
            Kind::Whole(0, u32::MAX as u64),
            "all",
            "Only the object at this position of the page.",
        ),
        or(
            "stream",
            Kind::Whole(0, u32::MAX as u64),
            "all",
            "Only this raw stream, or objects on it.",
        ),
        or("flow", NAMED, "the first", "This flow, by name or position."),
        or("path", NAMED, "as the metric", "This path, by name or position."),
        or(
            "direction",
            Kind::Words(|| crate::Direction::NAMES.to_vec()),
            "`down`",
            "This direction.",
        ),
        or("from", Kind::Text(&TIME), "0", "Samples from this time of the run on."),
        or("until", Kind::Text(&TIME), "the end", "Samples before this time."),
        or(
            "state",
            Kind::Text(&NAME),
            "any",
            "Samples in this state of the congestion controller.",
        ),
        or(
            "column",
            Kind::Text(&NAME),
            "none",
            "A column, or one divided by another, such as `srtt/min_rtt`.",
        ),
    ],
};

static DATA: Table = Table {
    title: "Data",
    about: "Numbers of a paper, which stand beside ours: in the file, or in a table beside it.",
    needs: &[],
    minimal: (ONE, "experiment.data[0]"),
    fields: &[
        required("metric", A_METRIC, "What they are of."),
        or(
            "source",
            Kind::Text(&ANY),
            "the experiment's",
            "Where they are from, if not the experiment's paper and figure.",
        ),
        or("page", Kind::Text(&ANY), "the only one", "The page of all values that name none."),
        or(
            "network",
            Kind::Text(&ANY),
            "the only one",
            "The network of all values that name none.",
        ),
        or(
            "values",
            Kind::List(&Kind::Map(&Kind::Any), 0, usize::MAX),
            "none",
            "Values in the file itself: tables with `policy`, perhaps `page` and `network`, and \
             statistics such as `mean = \"0.39s\"`.",
        ),
        or("file", Kind::Text(&NAME), "none", "A table beside the file: CSV with a header."),
        or(
            "filter",
            Kind::Map(&Kind::Text(&ANY)),
            "all rows",
            "Rows of the table: columns that must have these texts.",
        ),
        or("policy_column", Kind::Text(&ANY), "none", "Column of the policy."),
        or(
            "policies",
            Kind::Map(&Kind::Text(&NAME)),
            "none",
            "Texts of that column to labels of policies; others are left out.",
        ),
        or(
            "columns",
            Kind::Map(&Kind::Text(&NAME)),
            "none",
            "Columns of statistics: `mean = \"mean_s\"`.",
        ),
        or("unit", Kind::Text(&ANY), "none", "Unit of the columns, such as `s`."),
    ],
};
