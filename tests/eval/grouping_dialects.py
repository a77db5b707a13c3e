"""Messages of invented programs for grouping_variants.py: phones, an app, a cluster, an installer, a switch,
a database, a desktop, a service.

A hole is {kind}; grouping_variants.py has the kinds. Every twentieth message has its [[optional part]]. Holes
are what "Guidelines for Assessing the Accuracy of Log Message Template Identification Techniques" (ICSE 2022)
calls variable: numbers, truth values, null, users, paths, names. No message is from a data set.
"""
from typing import Dict, List

PHONE = """
take lock={int}, flags={hex}, tag="{tag}", name={package}, source={null_or_token}, uid={int}, pid={int}
drop lock={int}, flags={hex}, tag="{tag}", name={package}, source={null_or_token}, uid={int}[[, held={int}ms]]
setBrightnessTarget: level={int}, animate={bool}
setScreenPower({bool})
window {token} is gone, finishing
window {token} is drawn, reporting
adding {token} to the stack
Skipping {token} -- about to close
showing dialog wtoken = {token}, ready= {bool}, visible = {bool}, moving = {bool}
getTasks: caller {int} does not hold REAL_TASKS; limiting output
start u{nat} {act={action} flg={hex} cmp={activity} (has extras)} from uid {int} on display {int}
start u{nat} {act={action} cmp={activity}} from pid {int}
Process {package} (pid {int}) has died
Process {package} (pid {int}) has started
Killing {int}:{package}/u{nat} (adj {int}): empty for {int}s
notifyChanged list {tokens}
userActivity: eventTime={int}, event={int}, flags={hex}, uid={int}
isScreenOn: {bool}
is locked {bool}
Value of visible is {bool}
mKeyguard.isShowing is {bool}
ready={bool},policy={int},wake={int},summary={hex},boot={bool},auto={int},adj={float}user={int}
animateCollapse force={bool} delayed={bool} bars={bool}
onSensor: {float} {float} {float}
updateRotation: new={int} old={int}
Bad activity token: {token}
cancel, calling uid = {int}, calling pid = {int}
bind: {intent} for user {int}
unbind: {intent} for user {int}
Relaunching {token} with config {braces}
battery level {int}, plugged {bool}
plugged in
unplugged
Turning screen on
Turning screen off
enqueue notification from {package} id={int} tag={null_or_name}
remove notification from {package} id={int} tag={null_or_name}
No longer want {package} (pid {int}): hidden #{nat}
Unable to find {package} for user {user}
setVisibility vis={hex} mask={hex} old={int} new={int} diff={int}, bounds=Rect({int}, {int} - {int}, {int})
{null_or_name} selected as input method
Applying new app {package} in {float} ms
doze mode entered
doze mode left
permission {permission} granted to {package}
permission {permission} denied to {package}
layer {layer} hidden
layer {layer} shown
"""

APP = """
onStepChanged {int}
onTargetReached
onExtend:{int} {int} {int} {int}
onReceive action: {action}
handleAction action:{action}
flush data
flush
calculateCalories totalCalories={int}
calculateAltitude totalAltitude={int}
calculateDistance total={float}
REPORT : {int} {int} {int} {int}
getTodayDetail = {hashes}
setTodayDetail = {hashes}
initStepCounter success = {bool}
screen status is {bool}
upload minute data time={int},{int},{int},{int}
upload finished
upload started
saveData() size = {int}
saveData() size is null
processData type={int}
user is {user}
bindHelper: connected={bool}
bindHelper: bound={bool}
isMoving={bool}
setState={null_or_name}
last time={int}, diff={int}
new day {date}
timer tick {int}
aggregate() {int} rows[[, dropped={int}]]
aggregate() no rows
insert into {name}
delete from {name}
sync with {host}[[ (retry {int})]]
sync done, {int} records
sync failed: java.net.SocketException
{int} ms left
version {version}
goal={int} done={bool}
alarm uploadStatic totalSteps={int}:{int}:{int}
checkDay
checkTime old={int} new={int}
registerSensor type {int}
unregisterSensor type {int}
"""

CLUSTER = """
session opened for user {user} by (uid={int})
session opened for user {user} by {user}(uid={int})
session closed for user {user}
({user}) CMD ({command})
synchronized to {ip}, stratum {int}
connect from {ip}
no answer from any [{name}] datasource
{ip} port {port}: connection timed out
Server listening on {ip} port {port}.
Accepted publickey for {user} from {ip6} port {port} ssh2
Accepted password for {user} from {ip6} port {port} ssh2
Connection closed by {ip6}
failed to read prefix on control stream (socket to {ip}:{port})
failed to write prefix on control stream (socket to {ip}:{port})
generating core.{nat}
instruction cache parity error corrected
data cache parity error corrected
{count} L3 EDRAM dcr {hex} detected and corrected
{int} double-hummer alignment exceptions
node card VPD check: {host} is missing
link {host} is up
link {host} is down
ib{nat}: no ipv6 routers present
{host} kernel: imklog {version}, log source = {path} started.
dhcp: DHCPDISCOVER from {mac} via eth{nat}: network {ip}/{nat}: no free leases
dhcp: DHCPREQUEST for {ip} from {mac} via eth{nat}
dhcp: DHCPACK on {ip} to {mac} via eth{nat}
mounted {path} from {fqdn}:{path}
unmounted {path}
mount of {path} failed: No such file or directory
sweep: no configuration change required
sweep: topology changed
rpm {packagever} installed
job {int} started by {user} on {host}
job {int} ended with status {int}[[, rss={size}]]
temperature of CPU {int} is {int} C
fan {int} is at {int} rpm
message repeated {int} times
relay={fqdn}, delay={dur}, dsn={version}, stat=Sent
{hexbare}: to={mail}, ctladdr={mail}, delay={dur}, pri={int}, relay={fqdn} [{ip}], dsn={version}, stat=Sent
{hexbare}: from={mail}, size={int}, class={int}, nrcpts={int}, msgid=<{mail}>, proto=ESMTP
eth{nat}: link up
eth{nat}: link down
crond({user}): reload {path}
CPU {int}: machine check, bank {int}: {hexbare}
usb {nat}-{nat}: new device number {int}
"""

INSTALLER = """
Loaded stack v{version} with core: {winpath}
Session: {nat}_{nat} initialized by client {name}.
Session: {nat}_{nat} closed by client {name}.
Ending initialization.
Starting initialization.
Ending the main loop.
Starting the main loop.
Initializing online with opt-in: {bool}
Cleaning up report files older than {int} days.
Requesting upload of all unsent reports.
Failed to start upload with file pattern: {winpath}, flags: {hex} [HRESULT = {hex} - E_UPLOAD_SAFE]
Failed to open package {winpackage} [HRESULT = {hex} - E_INVALID_PACKAGE]
Failed to find package. [HRESULT = {hex} - E_MISSING_PACKAGE]
Read out cached applicability for package: {winpackage}, ApplicableState: {int}, CurrentState:{int}
Warning: Unrecognized attribute {name}.
Expecting attribute name [HRESULT = {hex} - E_INVALID_ITEM]
NonStart: Set pending store consistency check.
NonStart: Checking to ensure startup processing was not required.
{hexbare8} Created transaction (seq {int}) result {hex}, handle @{hex}
{hexbare8} Created commit (seq {int}) result {hex}, handle @{hex}
{hexbare8}@{date} perf trace:
Scavenge: Begin store
Scavenge: End store
Scavenge: Package store indicates there is no component to scavenge, skipping.
Offline image is: {null_or_name}
Reboot mark set: {bool}
Reboot mark refs: {int}
Idle processing thread terminated normally
Idle processing thread started
Service {service} state changed to running
Service {service} state changed to stopped
Created registry key {regkey}
Deleted registry key {regkey}
Set value {name} of {regkey} to "{tag}"
User {domainuser} logged on[[ from {ip}]]
User {domainuser} logged off
Download of {url} took {dur}
{count} file copied to {winpath}
{count} update found
Driver {drivername} loaded, signed={bool}
Driver {drivername} unloaded
GUID {guid} not registered
"""

SWITCH = """
Interface {iface}, changed state to up
Interface {iface}, changed state to down
Line protocol on Interface {iface}, changed state to up
Line protocol on Interface {iface}, changed state to down
Neighbor {ip} Up
Neighbor {ip} Down BFD
Configured from console by {user} on vty{nat} ({ip})
list {int} denied tcp {ip}({port}) -> {ip}({port}), {count} packet
list {int} permitted tcp {ip}({port}) -> {ip}({port}), {count} packet
Login Success [user: {user}] [Source: {ip}] [localport: {port}]
Login failed [user: {user}] [Source: {ip}] [localport: {port}] [Reason: Invalid login]
Host {mac} in vlan {int} is flapping between port {iface} and port {iface}
Duplicate address {ip} on {iface}, sourced by {mac}
fan tray {int} removed
fan tray {int} inserted
power supply {int} ok
power supply {int} failed
SNMP trap sent to {ip}
ntp peer {fqdn} reachable
ntp peer {fqdn} unreachable
route {ip}/{nat} added via {ip}[[ metric {int}]]
route {ip}/{nat} removed via {ip}
vlan {int} created by {user}
vlan {int} deleted by {user}
cpu usage {float}%
mac table full
mac table cleared
image {path} verified
lldp: {iface} learned {host}
lldp: {iface} forgot {host}
tunnel {ip6} rekeyed
tunnel {ip6} expired
policy {name} applied
policy {name} withdrawn
acl {name} compiled in {dur}
config saved
stp: root bridge is {mac}
"""

DATABASE = """
connection received: host={host} port={port}
connection authorized: user={user} database={name}[[ application_name={name}]]
disconnection: session time: {clock} user={user} database={name} host={host} port={port}
checkpoint starting: time
checkpoint starting: xlog
checkpoint complete: wrote {int} buffers ({float}%); sync={float} s, total={float} s; longest={float} s
duration: {float} ms
duration: {float} ms  statement: {sql}
relation "{name}" does not exist
column "{name}" does not exist
database "{name}" created
database "{name}" dropped
role "{user}" is not permitted to log in
automatic vacuum of table "{dotted}": index scans: {int}
automatic analyze of table "{dotted}" system usage: {float} s
process {int} still waiting for ShareLock on transaction {int} after {float} ms
process {int} acquired ShareLock on transaction {int} after {float} ms
replication slot {name} is active
replication slot {name} is idle
node {host} joined
node {host} left
leader is {host}
election lost by {host}
election won by {host}
compacted {count} segment in {dur}
compaction of {name} paused
compaction of {name} resumed
cache={name} hits={int} misses={int} ratio={float}
cache={name} evicted={int}
read only: {bool}
snapshot {uuid} taken in {dur}
snapshot {uuid} deleted
request {uuid} from {user} returned {int}
GET {urlpath} {int} {int}
POST {urlpath} {int} {int}
task {name} queued
task {name} cancelled
task {name} finished in {dur}
index {name} built
index {name} dropped
peer {ipport} dialed
peer {ipport} hung up
lease {hexbare} granted ttl={int}
lease {hexbare} revoked
shard {list} moved to {host}
options: {kvs}
backup to {url} done
backup to {url} skipped
"""

DESKTOP = """
activating service name='{dotted}' requested by ':{float}' (uid={int} pid={int} comm="{path}")
activated service '{dotted}'
device ({host}): carrier is {bool}
device ({host}): link connected
device ({host}): link disconnected
address {ip6} on {host} added
address {ip6} on {host} withdrawn
started session {int} of user {user}.
stopped session {int} of user {user}.
new seat {name}
removed seat {name}
{package}: could not find {path}
loading profile {path} took {dur}
theme {name} selected
theme {name} missing icon {name}
window {hex} mapped on screen {nat}
window {hex} unmapped
clipboard owner is {null_or_name}
printer {name} added
printer {name} removed
{count} file moved to trash
{count} packet dropped on {host}
sound card {nat} has {nat} outputs
volume={int} muted={bool}
battery at {int}%
lid opened
lid closed
update of {package} to {version} available
update of {package} to {version} installed
update of {package} skipped
monitor {host} mode {nat}x{nat}@{float}
keyboard layout {name}
mouse {mac} paired
mouse {mac} battery low
search index: {int} documents, {size}
search index idle
screen locked by {user}
screen unlocked by {user}
mount {path} as {name}
eject {name}
extension {mail} loaded
extension {mail} unloaded
file {winpath} has no handler
"""

SERVICE = """
Started {name} in {float} seconds (process running for {float})
Bean '{name}' of type [{package}.{name}] is not eligible for all processors
pool-{nat}: added connection {hexbare}
pool-{nat}: dropped connection {hexbare}
consumer client={name}, group={name} joined
consumer client={name}, group={name} left
partitions assigned: {list}
partitions revoked: {list}
opening session {uuid} for tenant {name}
closing session {uuid} for tenant {name}
order {int} placed by {user}
order {int} cancelled by {user}
order {int} shipped to {host}
stock of {name} is {int}
cart empty
cart cleared
retry {nat} of {nat} for {url}
feature {name} enabled={bool}
feature {name} toggled
gc pause {dur}, heap {size} of {size}
token of {user} renewed
token of {user} expired
cache {name} warmed in {dur}
cache {name} flushed
schema {name} at version {int}
{dotted} - {int} ms
slow query on {name}: {dur}
mail to {mail} queued
mail to {mail} delivered
webhook {url} returned {int}
{name} is leader: {bool}
{name} is follower
lock {name} acquired by {host}
lock {name} freed by {host}
job {name} scheduled at {date}
job {name} ran in {dur}
unknown field "{name}" in {path}
shutdown requested
draining {count} request
health ok
health degraded: {name}
quota of {user} is {size}
trace={hexbare} span={hexbare} sampled={bool}
currency {name} rate {float}
"""

DIALECTS: Dict[str, List[str]] = {
    "phone": PHONE.split("\n")[1:-1], "app": APP.split("\n")[1:-1], "cluster": CLUSTER.split("\n")[1:-1],
    "installer": INSTALLER.split("\n")[1:-1], "switch": SWITCH.split("\n")[1:-1],
    "database": DATABASE.split("\n")[1:-1], "desktop": DESKTOP.split("\n")[1:-1],
    "service": SERVICE.split("\n")[1:-1]}
