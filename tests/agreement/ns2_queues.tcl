# Endless NewReno flows through RED with ns-2's automatic parameters, or through DRR; prints one
# line of name=value.
#
#   ns ns2_queues.tcl SEED FLOWS MBIT BUFFER QUEUE SECONDS WARMUP
#
# QUEUE is red, gentle-red, or the quantum of DRR in bytes.
#
# Round trips from 60 to 80 ms, so that packets do not come in step; figures from the time WARMUP to
# SECONDS. RED of ns-2 counts the packets that wait, and lets as many wait as its limit says: BUFFER
# packets with the one in service are a limit of BUFFER - 1. It measures in bytes unless told, and
# takes packets for 500 B: both are set here. DRR leaves the packet in service out as well; its flows
# are those of source addresses, told apart without collisions by as many buckets.

remove-all-packet-headers
add-packet-header IP TCP Flags
lassign $argv seed sources mbit buffer queue seconds warmup
set rate [expr $mbit*1e6]; set access 10e9; set rtt 0.060
expr srand($seed); ns-random $seed
set ns [new Simulator]
$ns use-scheduler Calendar

# As benches/peers/ns2.tcl.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ 2
Agent/TCP set window_ 1000000
Agent/TCP set maxcwnd_ 0
Agent/TCP set minrto_ 1
Agent/TCP set rtxcur_init_ 1.0
Agent/TCP set maxrto_ 64
Agent/TCP set tcpTick_ 0.001
Agent/TCP set singledup_ 0
Agent/TCP set timestamps_ false
Agent/TCP set syn_ false
Agent/TCP set overhead_ 0
Agent/TCP set delay_growth_ false
Agent/TCP/Newreno set newreno_changes1_ 1

Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set mean_pktsize_ 1500
Queue/RED set gentle_ [string equal $queue gentle-red]
Queue/DRR set buckets_ 1009
Queue/DRR set mask_ 0
Queue/DRR set blimit_ [expr 1500*($buffer-1)]
if {[string is integer $queue]} { Queue/DRR set quantum_ $queue; set queue DRR } else { set queue RED }

set transmission [expr 2*(12000+320)/$access + (12000+320)/$rate]
set propagation [expr ($rtt-$transmission)/2]
set left [$ns node]; set right [$ns node]
$ns simplex-link $left $right $rate $propagation $queue
$ns simplex-link $right $left $rate $propagation DropTail
$ns queue-limit $left $right [expr $buffer-1]
$ns queue-limit $right $left 1000000
set discipline [[$ns link $left $right] queue]
set monitor [$ns monitor-queue $left $right ""]
set waiting [$monitor get-pkts-integrator]

for {set i 0} {$i < $sources} {incr i} {
    set sender [$ns node]; set receiver [$ns node]
    $ns duplex-link $sender $left $access [expr 0.010*$i/$sources] DropTail
    $ns duplex-link $right $receiver $access 0 DropTail
    foreach {a b} [list $sender $left $left $sender $right $receiver $receiver $right] {
        $ns queue-limit $a $b 1000000
    }
    set tcp($i) [new Agent/TCP/Newreno]; set sink($i) [new Agent/TCPSink]
    $ns attach-agent $sender $tcp($i); $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    $tcp($i) set fid_ $i
    set bulk [new Application/FTP]; $bulk attach-agent $tcp($i)
    $ns at [expr rand()] "$bulk start"
}

proc acknowledged {} {
    global tcp
    set sum 0
    foreach i [array names tcp] { incr sum [expr max(0, [$tcp($i) set ack_])] }
    return $sum
}

# Brings the integral up to now.
proc queue_integral {} {
    global ns waiting
    $waiting newpoint [$ns now] [$waiting set lasty_]
    return [$waiting set sum_]
}

proc measure {} {
    global begin monitor arrived dropped before integral
    global ns
    set begin [$ns now]
    set arrived [$monitor set parrivals_]; set dropped [$monitor set pdrops_]
    set before [acknowledged]; set integral [queue_integral]
}

proc report {} {
    global ns begin monitor arrived dropped before integral discipline queue
    set span [expr 1.0*([$ns now]-$begin)]
    set came [expr [$monitor set parrivals_]-$arrived]
    set lost [expr [$monitor set pdrops_]-$dropped]
    puts -nonewline "goodput_pps=[expr ([acknowledged]-$before)/$span] loss_ratio=[expr 1.0*$lost/$came]"
    puts -nonewline " waiting_mean_pkts=[expr ([queue_integral]-$integral)/$span]"
    if {$queue eq "RED"} {
        puts -nonewline " min_threshold=[$discipline set thresh_] max_threshold=[$discipline set maxthresh_]"
        puts -nonewline " weight=[$discipline set q_weight_]"
        puts -nonewline " max_probability=[expr 1.0/[$discipline set linterm_]]"
    }
    puts ""
    exit 0
}

$ns at $warmup measure
$ns at $seconds report
$ns run
