//! The page. It holds no script and asks for nothing from outside, and says so to the browser: what an agent wrote is shown, and
//! does nothing.

use std::fmt::{self, Write as _};

use offshoot_model::{Node, RunStatus, Stream, Timestamp};

use super::{Excerpt, Export, Row, SaidEnd};
use crate::branch::why;
use crate::held::held;
use crate::stats::{Cause, Parallelism, Spent};
use crate::{name, neutral, number, status_words, used};

const CSS: &str = include_str!("page.css");

/// So many ends of logs are unfolded.
const OPEN: usize = 3;
/// So many causes, agents and models are listed.
const LISTED: usize = 50;

/// Returns the page.
pub(super) fn page(export: &Export<'_>) -> String {
    let mut out = String::new();
    write_page(export, &mut out).expect("writing to a string cannot fail");
    out
}

fn write_page(export: &Export<'_>, out: &mut String) -> fmt::Result {
    let title = escape(&name::of(export.top));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n"
    )?;
    let rows = export.rows();
    head(export, &title, out)?;
    failures(export, &rows, out)?;
    let is_whole = export.top.status.is_success();
    let answer = if is_whole { "Answer" } else { "Answer, as far as it came" };
    text(answer, export.answer.as_ref(), out)?;
    tree(export, &rows, out)?;
    costs(export, out)?;
    logs(export, out)?;
    write!(
        out,
        "<footer>Made by offshoot {} at {}. Times are in UTC.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        number::moment(export.now)
    )
}

fn head(export: &Export<'_>, title: &str, out: &mut String) -> fmt::Result {
    let Export { top, stats, now, .. } = export;
    write!(out, "<h1>{title} {}</h1>\n<dl>\n", status(top.status))?;
    let mut fact = |word: &str, text: &str| writeln!(out, "<dt>{word}</dt><dd>{text}</dd>");
    fact("Run", &format!("<span class=\"id\">{}</span>", top.run))?;
    if let Some(why) = why(top) {
        fact("Why", &format!("<span class=\"why\">{}</span>", escape(&why)))?;
    }
    for held in held(export.tree, top) {
        fact("Held", &format!("<span class=\"why\">{}</span>", escape(&held)))?;
    }
    fact("Began", &number::moment(top.admitted_at))?;
    fact("Took", &number::duration(top.ended_at.unwrap_or(*now).since(top.admitted_at)))?;
    let counted = stats.statuses.iter().map(|(state, count)| {
        format!(
            "<span class=\"{}\">{} {}</span>",
            state.as_ref(),
            number::count(*count),
            status_words(*state)
        )
    });
    let counted = counted.collect::<Vec<_>>().join(", ");
    let again = match stats.ran_again {
        0 => String::new(),
        many => format!("; {} had no answer before and ran again", number::count(many)),
    };
    fact("Runs", &format!("{}: {counted}{again}", number::count(stats.runs)))?;
    let subtree = export.tree.subtree(top);
    if let Some(used) = used(&subtree.0, &subtree.1).filter(|used| used != number::NOT_REPORTED) {
        fact("Used", &escape(&used))?;
    }
    out.push_str("</dl>\n");
    text("Task", export.task.as_ref(), out)
}

fn text(heading: &str, excerpt: Option<&Excerpt>, out: &mut String) -> fmt::Result {
    let Some(Excerpt { text, left_out }) = excerpt else { return Ok(()) };
    write!(out, "<h2>{heading}</h2>\n<pre>{}</pre>\n", escape(text))?;
    if *left_out > 0 {
        let size = number::bytes(*left_out);
        writeln!(out, "<p class=\"faint\">{size} more are not on this page.</p>")?;
    }
    Ok(())
}

fn failures(export: &Export<'_>, rows: &[Row<'_>], out: &mut String) -> fmt::Result {
    if export.stats.causes.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Failures</h2>\n<ul>\n");
    for Cause { runs, words, run_id, name, .. } in export.stats.causes.iter().take(LISTED) {
        let has_row = rows.iter().filter_map(Row::node).any(|node| node.run == *run_id);
        let name = escape(name);
        let link = if has_row { format!("<a href=\"#{run_id}\">{name}</a>") } else { name };
        let (count, words) = (number::count(*runs), escape(words));
        writeln!(
            out,
            "<li>{count} × <span class=\"why\">{words}</span> <span class=\"faint\">e.g. {link}</span></li>"
        )?;
    }
    let left = export.stats.causes.get(LISTED..).unwrap_or_default();
    if !left.is_empty() {
        let runs = number::count(left.iter().map(|cause| cause.runs).sum());
        let left = number::count(left.len() as u64);
        writeln!(out, "<li class=\"faint\">… {left} more causes, of {runs} runs</li>")?;
    }
    out.push_str("</ul>\n");
    Ok(())
}

fn tree(export: &Export<'_>, rows: &[Row<'_>], out: &mut String) -> fmt::Result {
    let span = Span::of(export);
    let ids = name::beginnings(export.tree.nodes().map(|node| node.run));
    let shown = rows.iter().filter_map(Row::node).count() as u64;
    let all = export.tree.subtrees().of(export.top).runs;
    out.push_str("<h2>Tree and times</h2>\n");
    let length = number::duration(span.to.since(span.from));
    write!(out, "<p class=\"faint\">The bars span {length}; grey is the time in line for a slot.")?;
    if shown < all {
        let (shown, all) = (number::count(shown), number::count(all));
        write!(
            out,
            " {shown} of {all} runs have a row: those with something to tell, then upper levels first. The others are counted."
        )?;
    }
    out.push_str("</p>\n<ol class=\"tree\">\n");
    for row in rows {
        match row {
            Row::Run { node, held, level, .. } => {
                // What holds the top back stands above all.
                let held = if *level > 0 { held.as_slice() } else { &[] };
                run(export, (node, &ids[&node.run], held), *level, &span, out)?
            }
            Row::More { text, level, .. } => {
                let text = escape(text);
                writeln!(
                    out,
                    "<li style=\"--level:{level}\"><div class=\"faint\">{text}</div></li>"
                )?;
            }
        }
    }
    out.push_str("</ol>\n");
    Ok(())
}

fn run(
    export: &Export<'_>,
    (node, id, held): (&Node, &str, &[String]),
    level: usize,
    span: &Span,
    out: &mut String,
) -> fmt::Result {
    let name = escape(&name::of(node));
    write!(
        out,
        "<li id=\"{}\" style=\"--level:{level}\"><div>{name} {}",
        node.run,
        status(node.status)
    )?;
    if let Some(age) = node.age(export.now) {
        write!(out, " {}", number::duration(age))?;
    }
    if let Some(silence) = export.silences.get(&node.run) {
        write!(out, " silent {}", number::duration(*silence))?;
    }
    if let Some(used) = used(&node.usage, &node.cost).filter(|used| used != number::NOT_REPORTED) {
        write!(out, " <span class=\"faint\">{}</span>", escape(&used))?;
    }
    write!(out, " <span class=\"id\">{id}</span>")?;
    if let Some(why) = why(node) {
        write!(out, "<br><span class=\"why\">{}</span>", escape(&why))?;
    }
    for held in held {
        write!(out, "<br><span class=\"why\">{}</span>", escape(held))?;
    }
    if let Some(reported) = &node.reported {
        write!(out, "<br><span class=\"faint\">“{}”</span>", escape(&neutral::line(reported)))?;
    }
    out.push_str("</div><div class=\"time\">");
    let end = span.end_of(node);
    let started = node.started_at.unwrap_or(end);
    bar("queue", node.admitted_at, started, span, out)?;
    if node.started_at.is_some() {
        bar(node.status.as_ref(), started, end, span, out)?;
    }
    out.push_str("</div></li>\n");
    Ok(())
}

fn bar(class: &str, from: Timestamp, to: Timestamp, span: &Span, out: &mut String) -> fmt::Result {
    let (left, right) = (span.percent(from), span.percent(to));
    let width = right - left;
    if class == "queue" && width < 0.1 {
        return Ok(());
    }
    write!(out, "<i class=\"{class}\" style=\"left:{left:.2}%;width:{width:.2}%\"></i>")
}

fn costs(export: &Export<'_>, out: &mut String) -> fmt::Result {
    let stats = export.stats;
    out.push_str("<h2>Times and costs</h2>\n<dl>\n");
    writeln!(out, "<dt>In line</dt><dd>{}</dd>", stats.queue)?;
    writeln!(out, "<dt>At work</dt><dd>{}</dd>", stats.run)?;
    if stats.wait.count > 0 {
        writeln!(out, "<dt>Waiting for children</dt><dd>{}</dd>", stats.wait)?;
    }
    let Parallelism { achieved, possible } = stats.parallelism;
    // Of a part of a tree it is not known: the slots are those of all.
    let of = if possible > 0.0 { format!(", of {possible} possible") } else { String::new() };
    writeln!(out, "<dt>At once</dt><dd>{achieved} on average{of}</dd>\n</dl>")?;
    let depths = stats.depths.iter().map(|(depth, spent)| (format!("depth {depth}"), spent));
    let owned = |(name, spent): (&String, _)| (name.clone(), spent);
    let known = stats.models.keys().any(|model| model != "configured");
    spent("By agent", stats.agents.iter().map(owned).collect(), out)?;
    if known {
        spent("By model", stats.models.iter().map(owned).collect(), out)?;
    }
    if stats.depths.len() > 1 {
        spent("By depth", depths.collect(), out)?;
    }
    Ok(())
}

fn spent(caption: &str, rows: Vec<(String, &Spent)>, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "<table><caption>{caption}</caption><tr><th></th><th>runs</th><th>tokens</th><th>cost</th></tr>"
    )?;
    let left = rows.len().saturating_sub(LISTED);
    for (name, Spent { runs, usage, cost }) in rows.into_iter().take(LISTED) {
        let tokens = number::tokens(usage.total());
        let tokens = tokens.trim_start_matches("tokens ").trim_end_matches(" tokens");
        let cost = if cost.is_none() { String::new() } else { number::cost(cost) };
        let cost = cost.trim_start_matches("cost ");
        let (name, runs) = (escape(&neutral::line(&name)), number::count(*runs));
        writeln!(out, "<tr><td>{name}</td><td>{runs}</td><td>{tokens}</td><td>{cost}</td></tr>")?;
    }
    if left > 0 {
        writeln!(out, "<tr><td class=\"faint\">… {} more</td></tr>", number::count(left as u64))?;
    }
    out.push_str("</table>\n");
    Ok(())
}

fn logs(export: &Export<'_>, out: &mut String) -> fmt::Result {
    let said: Vec<&SaidEnd> = export.said.iter().filter(|said| !said.lines.is_empty()).collect();
    if said.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Ends of logs</h2>\n<p class=\"faint\">The last lines of some runs, failures first. <code>offshoot logs RUN</code> prints all that is kept.</p>\n");
    for (at, SaidEnd { run, lines, left_out }) in said.into_iter().enumerate() {
        let Some(node) = export.tree.get(*run) else { continue };
        let open = if at < OPEN && !node.status.is_success() { " open" } else { "" };
        let (name, status) = (escape(&name::of(node)), status(node.status));
        write!(
            out,
            "<details{open}><summary>{name} {status} <span class=\"id\">{run}</span></summary>\n<pre>"
        )?;
        if *left_out > 0 {
            writeln!(
                out,
                "<span class=\"faint\">… {} lines before these</span>",
                number::count(*left_out)
            )?;
        }
        for (stream, line) in lines {
            let class = match stream {
                Some(Stream::Stdout) => "stdout",
                Some(Stream::Stderr) => "stderr",
                None => "faint",
            };
            writeln!(out, "<span class=\"{class}\">{}</span>", escape(line))?;
        }
        out.push_str("</pre></details>\n");
    }
    Ok(())
}

/// The time from the first admission to the last end.
struct Span {
    from: Timestamp,
    to: Timestamp,
}

impl Span {
    fn of(export: &Export<'_>) -> Self {
        let mut below = Vec::new();
        super::gather(export.tree, export.top, &mut below);
        let mut span = Self { from: export.top.admitted_at, to: export.now };
        span.to = below.iter().map(|node| span.end_of(node)).max().unwrap_or(span.from);
        span
    }

    /// The end of a run, of one that lives the end of the span, and of a lost one the last that is known of it.
    fn end_of(&self, node: &Node) -> Timestamp {
        let known = node.ended_at.or(node.left_at()).or(node.started_at);
        let known = known.unwrap_or(node.admitted_at);
        let is_over = node.status.is_terminal() || node.is_without_supervisor();
        if is_over { known } else { self.to }
    }

    fn percent(&self, at: Timestamp) -> f64 {
        let whole = self.to.since(self.from).as_secs_f64();
        let part = at.since(self.from).as_secs_f64();
        if whole > 0.0 { (part / whole * 100.0).min(100.0) } else { 0.0 }
    }
}

fn status(status: RunStatus) -> String {
    format!("<span class=\"{}\">{}</span>", status.as_ref(), status_words(status))
}

/// Text of others, which stays text: signs of HTML by their names, control characters as their pictures.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in neutral::block(text).chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
    out
}
