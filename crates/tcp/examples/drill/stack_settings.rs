//! Stack settings that scripts change with shell commands.

use super::system_call::number;
use super::{ScriptError, not_supported};
use tcpcast_tcp::modern::{
    CongestionControlKind, LossDetection, PacingCondition, Preset, SendBufferSize, Stack,
};

/// Settings of a script.
#[derive(Clone, Copy, Debug)]
pub struct StackSettings {
    pub stack: Stack,
    /// Window scale that follows from the maximum receive buffer; [`None`] if the script does not
    /// set the buffer. Then the expected scale depends on the host of its author.
    pub window_scale: Option<u8>,
    /// Size of the send buffer, and the limit of data that is not sent.
    pub send_buffer: SendBufferSize,
    pub notsent_lowat: u64,
    /// Minimum number of packets in a burst of a paced sender.
    pub min_burst: i64,
    /// Whether we accept an offer of ECN, and whether we offer it.
    pub accepts_ecn: bool,
    pub offers_ecn: bool,
    /// Whether the offer is of accurate ECN.
    pub offers_accurate_ecn: bool,
}

/// Settings without effect here: segmentation offload, buffers, keys of cookies, retries, pacing (used
/// by BBR only), and caches that do not affect a single connection.
const IGNORED_SYSCTLS: [&str; 20] = [
    "tcp_autocorking",
    "tcp_fack",
    "tcp_fastopen_key",
    "tcp_fin_timeout",
    "tcp_invalid_ratelimit",
    "tcp_limit_output_bytes",
    "tcp_moderate_rcvbuf",
    "tcp_mtu_probing",
    "tcp_no_metrics_save",
    "tcp_no_ssthresh_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_retries2",
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_syncookies",
    "tcp_tso_rtt_log",
    "tcp_tso_win_divisor",
    "tcp_tw_reuse",
    "mptcp_enabled",
];

impl StackSettings {
    /// Runs shell commands that change settings. After the first system call, only commands without
    /// effect are supported.
    pub fn run_shell(&mut self, shell: &str, is_at_start: bool) -> Result<(), ScriptError> {
        for command in shell.replace("\\\n", " ").split(['\n', ';']) {
            let command = command.split('#').next().unwrap_or_default().trim();
            if !command.is_empty() {
                self.run_command(command, is_at_start)?;
            }
        }
        Ok(())
    }

    fn run_command(&mut self, command: &str, is_at_start: bool) -> Result<(), ScriptError> {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        if program.contains("sysctl_restore") {
            return Ok(());
        }
        if !is_at_start {
            return not_supported(format!("a command within the script: {command}"));
        }
        if program.ends_with("defaults.sh") {
            self.set_packetdrill_defaults();
            return Ok(());
        }
        match program {
            "sysctl" => self.set_sysctls(&command.replace("net/ipv4/", "net.ipv4."), "net.ipv4."),
            _ if program.ends_with("set_sysctls.py") => {
                self.set_sysctls(command, "/proc/sys/net/ipv4/")
            }
            "echo" => self.set_module_parameter(command),
            "tc" if command.contains("qdisc") => self.set_queue(command),
            "ip" if command.contains("initcwnd") => self.set_route_options(command),
            "ip" if command.contains("tcp_metrics flush") => Ok(()),
            // The contents of files do not matter.
            "ethtool" | "/bin/rm" | "/bin/dd" => Ok(()),
            _ => not_supported(format!("the command {command}")),
        }
    }

    /// Settings of packetdrill's `defaults.sh` that differ from the defaults of Linux.
    fn set_packetdrill_defaults(&mut self) {
        self.stack.idle_restart = false;
        self.window_scale = Some(8);
        self.send_buffer = SendBufferSize::Growing { initial: 256 << 10, max: 4 << 20 };
        self.notsent_lowat = u64::MAX;
        (self.accepts_ecn, self.offers_ecn) = (false, false);
    }

    fn set_sysctls(&mut self, command: &str, prefix: &str) -> Result<(), ScriptError> {
        let mut rest = command;
        let mut any = false;
        while let Some(at) = rest.find(prefix) {
            rest = &rest[at + prefix.len()..];
            let Some((name, value)) = rest.split_once('=') else {
                return not_supported(format!("the setting {rest}"));
            };
            let value = value.trim_start();
            let quote = value.chars().next().filter(|&c| c == '"' || c == '\'');
            let value = match quote {
                Some(quote) => value[1..].split(quote).next().unwrap_or_default(),
                None => value.split_whitespace().next().unwrap_or_default(),
            };
            self.set_sysctl(name.trim(), value)?;
            any = true;
        }
        if any { Ok(()) } else { not_supported(format!("the setting {command}")) }
    }

    fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), ScriptError> {
        if IGNORED_SYSCTLS.contains(&name) {
            return Ok(());
        }
        if name == "tcp_congestion_control" {
            return self.set_congestion_control(value);
        }
        if name == "tcp_wmem" {
            let sizes =
                value.split_whitespace().map(parse_product).map(|size| size?.try_into().ok());
            let Some::<[u64; 3]>([_, initial, max]) =
                sizes.collect::<Option<Vec<u64>>>().and_then(|sizes| sizes.try_into().ok())
            else {
                return not_supported(format!("the setting {name}={value}"));
            };
            let (initial, max) = (initial.min(1 << 31), max.min(1 << 31));
            self.send_buffer = SendBufferSize::Growing { initial, max };
            return Ok(());
        }
        let last = value.split_whitespace().last().and_then(parse_product);
        let Some(number) = last.filter(|&n| n >= 0) else {
            return not_supported(format!("the setting {name}={value}"));
        };
        let on = number != 0;
        let stack = &mut self.stack;
        match (name, number) {
            ("tcp_sack", 0) => {
                stack.detection = LossDetection::DuplicateAcks;
                stack.receiving.dsack = false;
            }
            ("tcp_sack", _) => (),
            ("tcp_dsack", _) => stack.receiving.dsack = on,
            ("tcp_timestamps", _) => stack.timestamps = on,
            // Linux 7.0: 3 offers accurate ECN, 4 offers classic ECN, 5 offers none; all accept both.
            ("tcp_ecn", 0..=5) => {
                self.offers_ecn = matches!(number, 1 | 3 | 4);
                self.accepts_ecn = on;
                stack.accurate_ecn = number >= 3;
                self.offers_accurate_ecn = number == 3;
            }
            // TCP Fast Open without cookies: `TFO_CLIENT_NO_COOKIE`, `TFO_SERVER_COOKIE_NOT_REQD`.
            ("tcp_fastopen", _) => stack.fast_open = number & 0x204 != 0,
            ("tcp_frto", _) => stack.frto = on,
            ("tcp_reordering", _) => stack.reordering.initial = number as u32,
            ("tcp_max_reordering", _) => stack.reordering.max = number as u32,
            ("tcp_slow_start_after_idle", _) => stack.idle_restart = on,
            ("tcp_early_retrans", _) => return self.set_early_retransmit(number),
            ("tcp_recovery", _) => return self.set_loss_detection(number),
            ("tcp_rmem", _) => self.window_scale = Some(window_scale_of(number)),
            ("tcp_min_tso_segs", _) => {
                self.min_burst = number;
                return self.check_bursts();
            }
            ("tcp_rto_max_ms", 1..) => stack.max_rto = number as u64 * 1_000_000,
            ("tcp_rto_min_us", 1..) => stack.min_rto = number as u64 * 1000,
            ("tcp_notsent_lowat", _) => self.notsent_lowat = number as u64,
            ("tcp_window_scaling", 1) => (),
            ("tcp_comp_sack_nr" | "tcp_comp_sack_delay_ns", 0) => {
                stack.receiving.sack_compression = false;
            }
            _ => return not_supported(format!("the setting {name}={value}")),
        }
        Ok(())
    }

    /// `SO_RCVBUF`, which Linux doubles; half of the result is the maximum window.
    pub fn set_receive_buffer(&mut self, bytes: i64) {
        self.window_scale = Some(window_scale_of(bytes));
    }

    fn set_early_retransmit(&mut self, number: i64) -> Result<(), ScriptError> {
        if let LossDetection::Rack { tail_loss_probe, .. } = &mut self.stack.detection {
            *tail_loss_probe = number == 3 || number == 4;
        }
        Ok(())
    }

    fn set_loss_detection(&mut self, number: i64) -> Result<(), ScriptError> {
        if number & 1 == 0 {
            return not_supported("tcp_recovery without RACK, which current Linux always uses");
        }
        if let LossDetection::Rack { static_window, no_dupthresh, .. } = &mut self.stack.detection {
            *static_window = number & 2 != 0;
            *no_dupthresh = number & 4 != 0;
        }
        Ok(())
    }

    /// Sets the congestion control by its Linux name, which is in the name of a preset.
    pub fn set_congestion_control(&mut self, name: &str) -> Result<(), ScriptError> {
        let preset =
            Preset::from_name(&format!("linux-{name}")).or_else(|| Preset::from_name(name));
        let Some(preset) = preset else {
            return not_supported(format!("the congestion control {name}"));
        };
        self.stack.control = preset.stack().control;
        Ok(())
    }

    /// `echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect`
    fn set_module_parameter(&mut self, command: &str) -> Result<(), ScriptError> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (&[_, value, ">", path], CongestionControlKind::Cubic(cubic)) =
            (words.as_slice(), &mut self.stack.control)
        else {
            return not_supported(format!("the command {command}"));
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let Some(value) = number(value).filter(|_| path.contains("/tcp_cubic/")) else {
            return not_supported(format!("the command {command}"));
        };
        match (name, value) {
            ("hystart_detect", 0..=3) => {
                cubic.hystart_train = value & 1 != 0;
                cubic.hystart_delay = value & 2 != 0;
            }
            ("hystart", 0) => (cubic.hystart_train, cubic.hystart_delay) = (false, false),
            ("hystart", 1) => (),
            ("hystart_low_window", 0..) => cubic.hystart_low_window = value as u32,
            ("fast_convergence", 0..=1) => cubic.fast_convergence = value == 1,
            ("tcp_friendliness", 0..=1) => cubic.reno_friendly = value == 1,
            _ => return not_supported(format!("the command {command}")),
        }
        Ok(())
    }

    /// Sets the queue of the interface: one without delay, or `fq`, which paces.
    fn set_queue(&mut self, command: &str) -> Result<(), ScriptError> {
        match command.split_whitespace().last() {
            Some("fq") => {
                self.stack.pacing.condition = PacingCondition::Always;
                self.check_bursts()
            }
            Some("pfifo" | "pfifo_fast" | "noqueue") => Ok(()),
            _ => not_supported(format!("the command {command}")),
        }
    }

    /// Rejects bursts of more than two packets with `fq`, which are not modelled.
    fn check_bursts(&self) -> Result<(), ScriptError> {
        if self.stack.pacing.condition == PacingCondition::Always && self.min_burst > 2 {
            return not_supported(format!("fq with bursts of tcp_min_tso_segs={}", self.min_burst));
        }
        Ok(())
    }

    /// `ip route change ... initcwnd 4`
    fn set_route_options(&mut self, command: &str) -> Result<(), ScriptError> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let after = |key: &str| {
            let index = words.iter().position(|&word| word == key)?;
            words.get(index + 1).and_then(|value| number(value))
        };
        let unsupported =
            ["initrwnd", "rto_min", "quickack", "features", "window", "advmss", "mtu"];
        match after("initcwnd").filter(|&n| n > 0) {
            Some(packets) if !words.iter().any(|word| unsupported.contains(word)) => {
                self.stack.initial_window = packets as u32;
                Ok(())
            }
            _ => not_supported(format!("the command {command}")),
        }
    }
}

/// Parses a number, or a product in shell arithmetic.
fn parse_product(text: &str) -> Option<i64> {
    match text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")) {
        Some(factors) => factors.split('*').map(|factor| number(factor.trim())).product(),
        None => number(text),
    }
}

/// Window scale for a receive buffer, as in Linux: the minimum with which the window can be as
/// large as the buffer.
fn window_scale_of(buffer: i64) -> u8 {
    let bits = 63_u32.saturating_sub(buffer.max(1).leading_zeros());
    bits.saturating_sub(15).min(14) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> StackSettings {
        let stack = Preset::LinuxCubic.stack();
        StackSettings {
            stack,
            window_scale: None,
            send_buffer: SendBufferSize::Unlimited,
            notsent_lowat: u64::MAX,
            min_burst: 2,
            accepts_ecn: true,
            offers_ecn: false,
            offers_accurate_ecn: false,
        }
    }

    #[test]
    fn supported_settings_change_the_stack() {
        let mut setup = setup();
        let shell = "../../common/defaults.sh\n# a comment\nsysctl -q net.ipv4.tcp_timestamps=0 \
                     net.ipv4.tcp_early_retrans=0\nsysctl -q net.ipv4.tcp_rmem='4096 1 $((6*1024*1024))'";
        assert_eq!(setup.run_shell(shell, true), Ok(()));
        assert!(!setup.stack.timestamps && !setup.stack.idle_restart);
        assert!(matches!(
            setup.stack.detection,
            LossDetection::Rack { tail_loss_probe: false, .. }
        ));
        assert_eq!(setup.window_scale, Some(7));
        assert_eq!(window_scale_of(15 * 1024 * 1024), 8);
    }

    #[test]
    fn unsupported_commands_are_named() {
        for shell in [
            "sysctl -q net.ipv4.tcp_thin_linear_timeouts=1",
            "tc qdisc add dev tun0 root netem loss 1%",
            "iptables -A INPUT",
            "echo 1 > /proc/sys/net/ipv4/tcp_sack",
        ] {
            assert!(
                matches!(setup().run_shell(shell, true), Err(ScriptError::NotSupported(_))),
                "{shell}"
            );
        }
        assert!(setup().run_shell("tc qdisc replace dev tun0 root pfifo", false).is_err());
    }
}
