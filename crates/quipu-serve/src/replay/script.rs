//! Scripts that request objects.

use std::collections::VecDeque;
use std::fmt::Write as _;

use quipu_base::Duration;
use quipu_web::page::{Gap, ObjectKind};

use super::plan::Plan;

/// A browser is kept busy no longer than this: then it would ask its user whether to stop the page. Our choice.
const MOST_COMPUTING: Duration = Duration::from_secs(30);

/// Bytes of a request by `sendBeacon`, at most: <https://fetch.spec.whatwg.org/#http-network-or-cache-fetch>.
const MOST_BEACON: u64 = 65_536;

/// Functions that scripts use; those that do not occur in a program are left out.
const HELPERS: [(&str, &str); 7] = [
    ("N(", "N=()=>performance.now()"),
    ("W(", "W=(t,m)=>{for(m+=t;performance.now()<m;);}"),
    (
        "E(",
        "E=(n,p,f)=>{let d=document,x=Object.assign(d.createElement(n),p);x.onload=x.onerror=f;\
         (d.body||d.documentElement).append(x)}",
    ),
    ("F(", "F=(u,f,o)=>fetch(u,o).then(r=>r.blob()).then(f,f)"),
    (
        "X(",
        "X=(u,f,b,h)=>{let x=new XMLHttpRequest;x.onloadend=f;x.open(b?\"POST\":\"GET\",u);\
         h&&x.setRequestHeader(\"x-check\",h);x.send(b)}",
    ),
    ("L(", "L=f=>document.readyState==\"complete\"?f():addEventListener(\"load\",f)"),
    ("T(", "T=(u,f)=>new FontFace(\"f\",\"url(\"+JSON.stringify(u)+\")\").load().then(f,f)"),
];

/// A program that requests `objects`, each so long after its start as its gap says, and after each one what its
/// handler requests. It may stand in a script or, escaped, in an attribute. Empty if there are no objects.
///
/// Computing is a loop that ends so long after the program's start, so that objects of one parent share their
/// computing as in the page. Timers are timers of the browser. What started after the load event of the page is
/// requested after it, by a timer instead of computing that would hold it up.
pub(super) fn program(plan: &Plan<'_>, objects: &[usize]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let mut handlers = String::new();
    let mut open = VecDeque::new();
    let body = steps(plan, objects, &mut open);
    // Handlers are named, not nested: chains may be long.
    while let Some(object) = open.pop_front() {
        let steps = steps(plan, &plan.after[object], &mut open);
        let _ = write!(handlers, "const {}=()=>{{{steps}}};", handler_name(object));
    }
    let code = handlers + &body;
    let helpers: Vec<&str> = HELPERS
        .iter()
        .filter(|(call, _)| calls(&code, call))
        .map(|(_, definition)| *definition)
        .collect();
    match (helpers.is_empty(), code.starts_with("const ") || code.starts_with("let ")) {
        (true, false) => code,
        (true, true) => format!("(()=>{{{code}}})()"),
        (false, _) => format!("(()=>{{const {};{code}}})()", helpers.join(",")),
    }
}

/// True if `code` calls the function; URLs stand in quotes, and may hold anything.
fn calls(code: &str, call: &str) -> bool {
    code.split('"').step_by(2).any(|part| {
        part.match_indices(call).any(|(at, _)| {
            let before = part[..at].chars().next_back();
            !before.is_some_and(|sign| sign.is_ascii_alphanumeric() || sign == '.')
        })
    })
}

fn handler_name(object: usize) -> String {
    format!("a{object}")
}

/// The statements that request `objects`. Those whose handlers are needed join `open`.
fn steps(plan: &Plan<'_>, objects: &[usize], open: &mut VecDeque<usize>) -> String {
    let mut order = objects.to_vec();
    order.sort_by_key(|&object| (plan.gaps[object].total(), object));
    let late = |&object: &usize| {
        let total = plan.gaps[object].total();
        plan.is_after_load(object) && total > Duration::ZERO
    };
    let (late, order): (Vec<usize>, Vec<usize>) = order.into_iter().partition(late);
    let mut code = String::new();
    if order.iter().any(|&object| plan.gaps[object].computing > Duration::ZERO) {
        code.push_str("let t=N();");
    }
    for object in late {
        let request = request(plan, object, open);
        let after = millis(plan.gaps[object].total());
        let _ = write!(code, "setTimeout(()=>L(()=>{{{request}}}),{after});");
    }
    // Timers run while the others compute.
    let timed = |&&object: &&usize| plan.gaps[object].timer > Duration::ZERO;
    for &object in order.iter().filter(timed) {
        let Gap { computing, timer } = plan.gaps[object];
        let wait = if computing > Duration::ZERO { wait(computing + timer) } else { String::new() };
        let request = request(plan, object, open);
        let _ = write!(code, "setTimeout(()=>{{{wait}{request}}},{});", millis(timer));
    }
    for &object in order.iter().filter(|object| !timed(object)) {
        let computing = plan.gaps[object].computing.min(MOST_COMPUTING);
        if computing > Duration::ZERO {
            code.push_str(&wait(computing));
        }
        code.push_str(&request(plan, object, open));
        code.push(';');
    }
    code
}

fn wait(until: Duration) -> String {
    format!("W(t,{});", millis(until))
}

/// Milliseconds, to a tenth.
fn millis(duration: Duration) -> String {
    let tenths = duration.as_micros() / 100;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// The expression that requests `object`.
fn request(plan: &Plan<'_>, object: usize, open: &mut VecDeque<usize>) -> String {
    let asker = &plan.page.objects()[object];
    let url = text(&plan.reference(object));
    let handler = match plan.after[object].is_empty() {
        true => String::new(),
        false => {
            open.push_back(object);
            format!(",{}", handler_name(object))
        }
    };
    let bytes = asker.request.body.0;
    let body = format!("\"0\".repeat({bytes})");
    let checked = plan.checks[object].is_some();
    let fetch = |options: &[String]| match (options.is_empty(), handler.is_empty()) {
        (true, _) => format!("F({url}{handler})"),
        (false, true) => format!("F({url},0,{{{}}})", options.join(",")),
        (false, false) => format!("F({url}{handler},{{{}}})", options.join(",")),
    };
    if plan.repeated[object] {
        return fetch(&["cache:\"no-store\"".to_owned()]);
    }
    match asker.kind {
        ObjectKind::Document => format!("E(\"iframe\",{{src:{url}}})"),
        ObjectKind::Stylesheet => {
            let id = match plan.has_box(object) {
                true => format!("id:\"c{object}\","),
                false => String::new(),
            };
            let mut code = format!("E(\"link\",{{{id}rel:\"stylesheet\",href:{url}}}{handler})");
            for sheet in plan.imported_boxes(object) {
                let _ = write!(code, ";E(\"meta\",{{id:\"c{sheet}\"}})");
            }
            code
        }
        ObjectKind::Script => format!("E(\"script\",{{src:{url}}})"),
        ObjectKind::Image if handler.is_empty() => format!("new Image().src={url}"),
        ObjectKind::Image => format!("E(\"img\",{{src:{url}}}{handler})"),
        ObjectKind::Font => format!("T({url}{handler})"),
        ObjectKind::Media if handler.is_empty() => {
            format!("E(\"video\",{{preload:\"auto\",muted:true,src:{url}}})")
        }
        ObjectKind::Prefetch => format!("E(\"link\",{{rel:\"prefetch\",href:{url}}}{handler})"),
        ObjectKind::Ping if handler.is_empty() => match bytes {
            0 => format!("navigator.sendBeacon({url})"),
            bytes => {
                let bytes = bytes.min(MOST_BEACON / 2);
                format!("navigator.sendBeacon({url},\"0\".repeat({bytes}))")
            }
        },
        ObjectKind::Ping => fetch(&["method:\"POST\"".to_owned()]),
        ObjectKind::Xhr => match (bytes, checked, handler.as_str()) {
            (0, false, handler) => format!("X({url}{handler})"),
            (bytes, checked, handler) => {
                let handler = if handler.is_empty() { ",null" } else { handler };
                let body = if bytes == 0 { "\"\"" } else { body.as_str() };
                let check = if checked { ",1" } else { "" };
                format!("X({url}{handler},{body}{check})")
            }
        },
        ObjectKind::Fetch
        | ObjectKind::Preflight
        | ObjectKind::Media
        | ObjectKind::Manifest
        | ObjectKind::Other => {
            let mut options = Vec::new();
            if bytes > 0 {
                options.push(format!("method:\"POST\",body:{body}"));
            }
            if checked {
                options.push("headers:{\"x-check\":1}".to_owned());
            }
            fetch(&options)
        }
    }
}

/// A string of JavaScript that may stand between the tags of a script.
fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '<' => quoted.push_str("\\x3c"),
            sign if sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}') => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(sign));
            }
            sign => quoted.push(sign),
        }
    }
    quoted.push('"');
    quoted
}
