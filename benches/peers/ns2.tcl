# The two workloads on ns-2 (2.35, Debian package ns2); prints one line of name=value.
#
#   ns ns2.tcl w134 PATIENT SEED CONNECTIONS WARMUP
#       134 on/off NewReno sources on 10 Mbit/s, as scenarios/web-10mbit.toml; values of the
#       connections after the first WARMUP ones
#   ns ns2.tcl long PATIENT SEED FLOWS MBIT BUFFER LOSS SECONDS WARMUP QUANTUM
#       endless NewReno flows over 60 ms; values from the time WARMUP to SECONDS; with DRR and
#       a quantum of QUANTUM bytes unless it is 0
#
# PATIENT is 1 for a NewReno that sets its timer only at the first retransmission of a recovery, like
# tcpcast's rfc-newreno-patient (ns-2's default), or 0 if each retransmission sets it (rfc-newreno).
#
# With a queue-limit of B, B-1 packets wait in addition to the one in service. This equals tcpcast's
# buffer of B packets.

remove-all-packet-headers
add-packet-header IP TCP Flags
lassign $argv workload patient seed
if {$workload == "w134"} {
    lassign [lrange $argv 3 end] connections warmup
    set sources 134; set buffer 150; set rate 10e6; set ingress 100e6; set egress 2e6; set rtt 0.050
    set loss 0; set quantum 0
} else {
    lassign [lrange $argv 3 end] sources mbit buffer loss seconds warmup quantum
    set rate [expr $mbit*1e6]; set ingress 10e9; set egress 10e9; set rtt 0.060
}
expr srand($seed); ns-random $seed
set ns [new Simulator]
$ns use-scheduler Calendar
set clock [$ns set scheduler_]

# Packets of 1500 B on the wire and acks of 40 B, no handshake, RFC 6298 with a minimum of 1 s.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set windowInitOption_ 1
Agent/TCP set minrto_ 1
Agent/TCP set rtxcur_init_ 1.0
Agent/TCP set maxrto_ 64
Agent/TCP set tcpTick_ 0.001
Agent/TCP set singledup_ 0
Agent/TCP set timestamps_ false
Agent/TCP set syn_ false
Agent/TCP set overhead_ 0
Agent/TCP set delay_growth_ false
Agent/TCP/Newreno set newreno_changes1_ $patient
if {$workload == "w134"} {
    Agent/TCP set window_ 44
    Agent/TCP set windowInit_ 2
} else {
    Agent/TCP set window_ 1000000
    Agent/TCP set windowInit_ 10
    Agent/TCP set maxcwnd_ 0
}

proc exponential {mean} { expr {-$mean*log(1.0-rand())} }

# Half of the propagation in each direction; rtt includes the transmission times of a packet and its ack.
set transmission [expr (12000+320)/$ingress + (12000+320)/$rate + (12000+320)/$egress]
set propagation [expr ($rtt-$transmission)/2]
set left [$ns node]; set right [$ns node]
if {$quantum > 0} {
    # It counts bytes, without the packet in service, and drops from the front of the longest queue.
    Queue/DRR set buckets_ 1009
    Queue/DRR set mask_ 0
    Queue/DRR set quantum_ $quantum
    Queue/DRR set blimit_ [expr 1500*($buffer-1)]
    $ns simplex-link $left $right $rate $propagation DRR
    $ns simplex-link $right $left $rate $propagation DropTail
} else {
    $ns duplex-link $left $right $rate $propagation DropTail
}
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left 1000000
if {$loss > 0} {
    set errors [new ErrorModel]; $errors unit pkt; $errors set rate_ $loss
    $errors ranvar [new RandomVariable/Uniform]; $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $left $right
}
set queue [$ns monitor-queue $left $right ""]

for {set i 0} {$i < $sources} {incr i} {
    set sender [$ns node]; set receiver [$ns node]
    $ns duplex-link $sender $left $ingress 0 DropTail
    $ns duplex-link $right $receiver $egress 0 DropTail
    foreach {a b} [list $sender $left $left $sender $right $receiver $receiver $right] {
        $ns queue-limit $a $b 1000000
    }
    set tcp($i) [new Agent/TCP/Newreno]; set sink($i) [new Agent/TCPSink]
    $ns attach-agent $sender $tcp($i); $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    $tcp($i) set fid_ $i
    set number($tcp($i)) $i
    if {$workload == "w134"} {
        $ns at [exponential 1.0] "transfer $i"
    } else {
        set bulk [new Application/FTP]; $bulk attach-agent $tcp($i)
        $ns at [expr rand()] "$bulk start"
    }
}

set done 0; set packets 0; set in_window 0; set on_time 0.0; set begin 0.0
set arrived_before 0; set dropped_before 0; set delivered 0

proc transfer {i} {
    global clock tcp sink size started
    # A loss of the very first packet permanently sets the initial window to 1, so set it again.
    $tcp($i) set windowInit_ 2
    $tcp($i) reset; $sink($i) reset
    set size($i) [expr {int(3+[exponential 9.0]+0.5)}]
    set started($i) [$clock now]
    $tcp($i) advanceby $size($i)
}

Agent/TCP instproc done {} {
    global clock number done connections warmup size started packets in_window on_time delivered
    set i $number($self); set now [$clock now]
    incr done; incr delivered $size($i)
    if {$done > $warmup} {
        incr in_window
        incr packets $size($i)
        set on_time [expr {$on_time+$now-$started($i)}]
    }
    if {$done == $warmup} { measure }
    if {$done >= $connections} { report }
    $clock at [expr {$now+[exponential 1.0]}] "transfer $i"
}

proc acknowledged {} {
    global tcp
    set sum 0
    foreach i [array names tcp] { incr sum [expr max(0, [$tcp($i) set ack_])] }
    return $sum
}

# The warm-up has ended.
proc measure {} {
    global clock queue workload begin arrived_before dropped_before acknowledged_before
    set begin [$clock now]
    set arrived_before [$queue set parrivals_]; set dropped_before [$queue set pdrops_]
    if {$workload != "w134"} { set acknowledged_before [acknowledged] }
}

proc report {} {
    global ns workload queue begin packets in_window on_time delivered wall_begin
    global arrived_before dropped_before acknowledged_before
    set wall [expr ([clock microseconds]-$wall_begin)/1e6]
    if {$workload != "w134"} {
        set delivered [acknowledged]
        set packets [expr $delivered-$acknowledged_before]
    }
    set arrived [expr [$queue set parrivals_]-$arrived_before]
    set dropped [expr [$queue set pdrops_]-$dropped_before]
    puts -nonewline "wall_s=$wall delivered=$delivered"
    puts -nonewline " goodput_pps=[expr 1.0*$packets/([$ns now]-$begin)] loss_ratio=[expr 1.0*$dropped/$arrived]"
    if {$workload == "w134"} {
        puts -nonewline " connection_rate_bps=[expr $packets*12000.0/$on_time]"
        puts -nonewline " on_time_s=[expr $on_time/$in_window] mean_size_pkts=[expr 1.0*$packets/$in_window]"
    }
    puts ""
    exit 0
}

if {$workload != "w134"} { $ns at $warmup measure; $ns at $seconds report }
$ns at 0.0 { set wall_begin [clock microseconds] }
$ns run
