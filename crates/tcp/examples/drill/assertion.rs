//! Assertions about `TCP_INFO` in the subset of Python that scripts use: `assert`, variables,
//! comparisons, arithmetic.

use std::collections::HashMap;

use super::system_call::number;
use super::{ScriptError, failed, not_supported};
use tcpcast_link::time::MILLISECOND;
use tcpcast_tcp::modern::{ConnectionState, PhaseName, TcpInfo};

/// Variables of a script, shared by all its blocks.
pub type Variables = HashMap<String, f64>;

/// Executes a block of statements.
pub fn run_block(
    python: &str,
    info: &TcpInfo,
    state: ConnectionState,
    variables: &mut Variables,
) -> Result<(), ScriptError> {
    for line in python.replace("\\\n", " ").lines() {
        let line = line.split('#').next().unwrap_or_default();
        for statement in line.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            run_statement(statement, info, state, variables)?;
        }
    }
    Ok(())
}

fn run_statement(
    statement: &str,
    info: &TcpInfo,
    state: ConnectionState,
    variables: &mut Variables,
) -> Result<(), ScriptError> {
    if statement.starts_with("print") {
        return Ok(());
    }
    if let Some(rest) = statement.strip_prefix("assert") {
        let tokens = tokenize(strip_message(rest))?;
        let mut evaluator = Evaluator { tokens: &tokens, next: 0, info, state, variables };
        let value = evaluator.evaluate()?;
        if value != 0.0 {
            return Ok(());
        }
        let values = evaluator.format_values();
        return failed(format!("expected {}, got {values}", strip_message(rest).trim()));
    }
    for operator in ["+=", "-=", "="] {
        let Some((name, rest)) = statement.split_once(operator) else { continue };
        let name = name.trim();
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() || !is_name || rest.starts_with('=') {
            continue;
        }
        let tokens = tokenize(rest)?;
        let value = Evaluator { tokens: &tokens, next: 0, info, state, variables }.evaluate()?;
        let before = variables.get(name).copied();
        let value = match (operator, before) {
            ("=", _) => value,
            ("+=", Some(before)) => before + value,
            ("-=", Some(before)) => before - value,
            _ => return not_supported(format!("{name} has no value")),
        };
        variables.insert(name.to_owned(), value);
        return Ok(());
    }
    not_supported(format!("the statement {statement:?}"))
}

/// The condition of an assertion, without the message after the comma.
fn strip_message(text: &str) -> &str {
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => return &text[..index],
            _ => (),
        }
    }
    text
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Operator(&'static str),
}

const OPERATORS: [&str; 15] =
    ["==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "(", ")", "&"];

fn tokenize(text: &str) -> Result<Vec<Token>, ScriptError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = OPERATORS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Operator(sign));
            rest = rest[sign.len()..].trim_start();
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.is_empty() {
            return not_supported(format!("the expression {text:?}"));
        }
        let value = number(word).map(|n| n as f64).or_else(|| word.parse().ok());
        tokens.push(value.map_or_else(|| Token::Name(word.to_owned()), Token::Number));
        rest = rest[word.len()..].trim_start();
    }
    Ok(tokens)
}

/// Parses and evaluates an expression in one pass.
struct Evaluator<'a> {
    tokens: &'a [Token],
    next: usize,
    info: &'a TcpInfo,
    state: ConnectionState,
    variables: &'a Variables,
}

impl Evaluator<'_> {
    fn evaluate(&mut self) -> Result<f64, ScriptError> {
        let value = self.evaluate_or()?;
        match self.tokens.get(self.next) {
            None => Ok(value),
            Some(token) => not_supported(format!("{token:?} in an expression")),
        }
    }

    /// Values of the names of the expression, for a message.
    fn format_values(&self) -> String {
        let names = self.tokens.iter().filter_map(|token| match token {
            Token::Name(name) => {
                self.value_of_name(name).ok().map(|value| format!("{name} {value}"))
            }
            _ => None,
        });
        names.collect::<Vec<_>>().join(", ")
    }

    fn accept_name(&mut self, wanted: &str) -> bool {
        let matches =
            matches!(self.tokens.get(self.next), Some(Token::Name(name)) if name == wanted);
        self.next += usize::from(matches);
        matches
    }

    fn accept_operator(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let Some(Token::Operator(sign)) = self.tokens.get(self.next) else { return None };
        let sign = wanted.contains(sign).then_some(*sign);
        self.next += usize::from(sign.is_some());
        sign
    }

    fn evaluate_or(&mut self) -> Result<f64, ScriptError> {
        let mut value = self.evaluate_and()?;
        while self.accept_name("or") {
            let other = self.evaluate_and()?;
            value = if value != 0.0 { value } else { other };
        }
        Ok(value)
    }

    fn evaluate_and(&mut self) -> Result<f64, ScriptError> {
        let mut value = self.evaluate_not()?;
        while self.accept_name("and") {
            let other = self.evaluate_not()?;
            value = if value == 0.0 { value } else { other };
        }
        Ok(value)
    }

    fn evaluate_not(&mut self) -> Result<f64, ScriptError> {
        if self.accept_name("not") {
            return Ok(f64::from(self.evaluate_not()? == 0.0));
        }
        self.evaluate_comparison()
    }

    fn evaluate_comparison(&mut self) -> Result<f64, ScriptError> {
        let mut left = self.evaluate_sum()?;
        let mut holds = None;
        while let Some(sign) = self.accept_operator(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.evaluate_sum()?;
            let this = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            holds = Some(holds.unwrap_or(true) && this);
            left = right;
        }
        Ok(holds.map_or(left, f64::from))
    }

    fn evaluate_sum(&mut self) -> Result<f64, ScriptError> {
        let mut value = self.evaluate_product()?;
        while let Some(sign) = self.accept_operator(&["+", "-", "&"]) {
            let other = self.evaluate_product()?;
            value = match sign {
                "+" => value + other,
                "-" => value - other,
                _ => ((value as i64) & (other as i64)) as f64,
            };
        }
        Ok(value)
    }

    fn evaluate_product(&mut self) -> Result<f64, ScriptError> {
        let mut value = self.evaluate_unary()?;
        while let Some(sign) = self.accept_operator(&["*", "//", "/", "%"]) {
            let other = self.evaluate_unary()?;
            value = match sign {
                "*" => value * other,
                "/" => value / other,
                "//" => (value / other).floor(),
                _ => value.rem_euclid(other),
            };
        }
        Ok(value)
    }

    fn evaluate_unary(&mut self) -> Result<f64, ScriptError> {
        if self.accept_operator(&["-"]).is_some() {
            return Ok(-self.evaluate_unary()?);
        }
        if self.accept_operator(&["("]).is_some() {
            let value = self.evaluate_or()?;
            return match self.accept_operator(&[")"]) {
                Some(_) => Ok(value),
                None => not_supported("an unclosed parenthesis"),
            };
        }
        match self.tokens.get(self.next) {
            Some(Token::Number(number)) => {
                self.next += 1;
                Ok(*number)
            }
            Some(Token::Name(name)) => {
                self.next += 1;
                if name == "abs" {
                    return Ok(self.evaluate_unary()?.abs());
                }
                self.value_of_name(name)
            }
            other => not_supported(format!("{other:?} in an expression")),
        }
    }

    fn value_of_name(&self, name: &str) -> Result<f64, ScriptError> {
        if let Some(&value) = self.variables.get(name) {
            return Ok(value);
        }
        match name.strip_prefix("tcpi_") {
            Some(field) => tcp_info_field(self.info, self.state, field),
            None => tcp_constant(name),
        }
        .map_or_else(|| not_supported(format!("the name {name}")), Ok)
    }
}

fn tcp_info_field(info: &TcpInfo, state: ConnectionState, field: &str) -> Option<f64> {
    let micros = |nanos: u64| (nanos / 1000) as f64;
    let value = match field {
        "snd_cwnd" => f64::from(info.snd_cwnd),
        "snd_ssthresh" => f64::from(info.snd_ssthresh),
        "ca_state" => f64::from(match info.ca_state {
            PhaseName::Open => 0,
            PhaseName::Disorder => 1,
            PhaseName::Cwr => 2,
            PhaseName::Recovery => 3,
            PhaseName::Loss => 4,
        }),
        "state" => tcp_constant(match state {
            ConnectionState::Established => "TCP_ESTABLISHED",
            ConnectionState::SynSent => "TCP_SYN_SENT",
            ConnectionState::SynReceived | ConnectionState::FastOpen => "TCP_SYN_RECV",
            ConnectionState::FinWait1 => "TCP_FIN_WAIT1",
            ConnectionState::FinWait2 => "TCP_FIN_WAIT2",
            ConnectionState::TimeWait => "TCP_TIME_WAIT",
            ConnectionState::Closed => "TCP_CLOSE",
            ConnectionState::CloseWait => "TCP_CLOSE_WAIT",
            ConnectionState::LastAck => "TCP_LAST_ACK",
            ConnectionState::Listen => "TCP_LISTEN",
            ConnectionState::Closing => "TCP_CLOSING",
        })?,
        "unacked" => f64::from(info.unacked),
        "sacked" => f64::from(info.sacked),
        "lost" => f64::from(info.lost),
        "retrans" => f64::from(info.retrans),
        "total_retrans" => f64::from(info.total_retrans),
        "reordering" => f64::from(info.reordering),
        "reord_seen" => f64::from(info.reord_seen),
        "dsack_dups" => f64::from(info.dsack_dups),
        "backoff" => f64::from(info.backoff),
        "delivered" => f64::from(info.delivered),
        "delivered_ce" => f64::from(info.delivered_ce),
        "busy_time" => micros(info.busy_time),
        "rwnd_limited" => micros(info.rwnd_limited),
        "rto" => micros(info.rto),
        "rtt" => micros(info.rtt),
        "rttvar" => micros(info.rttvar),
        "min_rtt" => micros(info.min_rtt),
        "bytes_acked" => info.bytes_acked as f64,
        "notsent_bytes" => info.notsent_bytes as f64,
        "data_segs_out" => f64::from(info.data_segs_out),
        "snd_mss" => f64::from(info.snd_mss),
        "rcv_mss" => f64::from(info.rcv_mss),
        "advmss" => f64::from(info.advmss),
        "probes" => f64::from(info.probes),
        "sndbuf_limited" => micros(info.sndbuf_limited),
        "last_data_recv" => (info.last_data_recv / MILLISECOND) as f64,
        "last_data_sent" => (info.last_data_sent / MILLISECOND) as f64,
        _ => return None,
    };
    Some(value)
}

/// Constants of `linux/tcp.h` and `net/tcp_states.h`.
fn tcp_constant(name: &str) -> Option<f64> {
    let states = [
        "TCP_ESTABLISHED",
        "TCP_SYN_SENT",
        "TCP_SYN_RECV",
        "TCP_FIN_WAIT1",
        "TCP_FIN_WAIT2",
        "TCP_TIME_WAIT",
        "TCP_CLOSE",
        "TCP_CLOSE_WAIT",
        "TCP_LAST_ACK",
        "TCP_LISTEN",
        "TCP_CLOSING",
    ];
    let phases = ["TCP_CA_Open", "TCP_CA_Disorder", "TCP_CA_CWR", "TCP_CA_Recovery", "TCP_CA_Loss"];
    let number = match name {
        "TCP_INFINITE_SSTHRESH" => Some(0x7fff_ffff),
        "True" => Some(1),
        "False" => Some(0),
        _ => states
            .iter()
            .position(|&state| state == name)
            .map(|index| index + 1)
            .or_else(|| phases.iter().position(|&phase| phase == name)),
    };
    number.map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_tcp::modern::{Connection, Preset};

    fn checked(python: &str, variables: &mut Variables) -> Result<(), ScriptError> {
        let connection = Connection::new(Preset::LinuxCubic.stack(), 1460, 7, 1);
        run_block(python, &connection.tcp_info(0), connection.state(), variables)
    }

    #[test]
    fn supported_statements_are_executed() {
        let mut variables = Variables::new();
        for python in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "\nassert tcpi_snd_cwnd == 10 and tcpi_unacked < 1, (tcpi_unacked, 'x')\n# text\n",
            "cwnd = 3 * (4 - 1) + 1; assert tcpi_snd_cwnd == cwnd",
            "cwnd += 2; print(cwnd); assert 11 < cwnd <= 12 or False",
            "assert tcpi_ca_state == TCP_CA_Open, 'state %d' % (tcpi_ca_state)",
            "assert not tcpi_snd_ssthresh != 0x7fffffff",
        ] {
            assert_eq!(checked(python, &mut variables), Ok(()), "{python}");
        }
    }

    #[test]
    fn false_assertions_fail_and_unsupported_statements_are_named() {
        let mut variables = Variables::new();
        let failed = checked("assert tcpi_snd_cwnd == 11", &mut variables);
        let message = "expected tcpi_snd_cwnd == 11, got tcpi_snd_cwnd 10";
        assert_eq!(failed, Err(ScriptError::Failed(message.to_owned())));
        for python in ["assert tcpi_pmtu > 0", "for a in b", "assert cwnd[1]", "x += 1"] {
            assert!(
                matches!(checked(python, &mut variables), Err(ScriptError::NotSupported(_))),
                "{python}"
            );
        }
    }
}
