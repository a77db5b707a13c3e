// RE2 patterns, over bytes, for private data that a bundle redacts. The last group of a pattern is replaced.
// Constants; any thread.
#pragma once

#include <array>

namespace culprit::cli {

// User names: learned first, then removed at every occurrence.
constexpr std::array kNamePatterns{
    R"(/(?:home|Users)/(?:[a-z]/)?([A-Za-z0-9._-]+))",
    R"((?i)/(?:lustre|gpfs|beegfs|nfs|fsx|ceph|panfs|weka|vast|scratch|work|mnt)[a-z0-9_-]*/)"
    R"((?:users?|home\d*|people)/([a-z0-9._-]+))",
    R"(/home\d+/([A-Za-z0-9._-]+))",
    R"(\b(?:[A-Z0-9]+_)+(?:USER|ACCOUNT|LOGNAME|OWNER)["']?[=:]\s*["']?([A-Za-z][A-Za-z0-9._-]+))",
    R"((?i)\buser ["']?([a-z][a-z0-9._-]+)["']? (?:logged|signed|authenticated|connected) )",
    R"(\bjob of ([a-z][a-z0-9._-]+) on (?:node|host|partition)\b)",
    R"((?i)\blog(?:in|ged in|on) as ["']?([a-z][a-z0-9._-]+))",
    R"((?i)\bcreds?:\s*([a-z][a-z0-9._-]+)\s*/)",
    R"((?i)\s/user:(?:[a-z0-9._-]+\\)?([a-z][a-z0-9._-]+))",
    R"(\b(?:[Aa]uthor|[Cc]ommitter|(?:[Ss]igned-[Oo]ff|[Rr]eviewed|[Rr]eported|[Aa]pproved|[Cc]o-[Aa]uthored)-[Bb]y):?\s+)"
    R"(([A-Z][^\s<>"',:;()]+ [A-Z][^\s<>"',:;()]+))",
    R"((?i)[\\:]\\*(?:users|benutzer|utilisateurs|usuarios|documents and settings)\\+([^\\/:*?"<>|\r\n]{1,64}))",
    R"(\b(?:UserId|GroupId|Uid|Gid|OWNER|SUBMITTER)=([A-Za-z0-9._-]+)\(\d+\))",
    R"((?i)\b(?:submitted|requested|owned) by:?\s+(?:user\s+)?["']?([A-Za-z][A-Za-z0-9._-]+(?: [A-Z][a-z]+)?))",
    R"((?i)\b(?:submitter|submitted_by|requested_by|created_by|started_by)["']?\s*[=:]\s*["']?([A-Za-z][A-Za-z0-9._-]+))",
    R"((?i)\b(?:user|username|login|logname|owner)["']?\s*[=:]\s*["']?([A-Za-z][A-Za-z0-9._-]+))",
    R"(\b(?:uid|gid)=\d+\(([A-Za-z0-9._-]+)\))",
    R"((?i)\bfor user ([A-Za-z][A-Za-z0-9._-]+))",
    R"(\b([A-Za-z][A-Za-z0-9._-]*)@[A-Za-z0-9.-]+:[~/A-Za-z])",
    R"(://([A-Za-z][A-Za-z0-9._-]*)(?::[^/\s@]*)?@)",
    R"(\bmachine\s+\S+\s+login\s+([A-Za-z][A-Za-z0-9._-]+))",                      // .netrc
    R"((?i)\blogin\b[^|;&]*?\s(?:-u|--username)[\s=]+([A-Za-z][A-Za-z0-9._-]+))",  // login of a registry
    R"(\bAAAA[A-Za-z0-9+/=]{20,}\s([A-Za-z][A-Za-z0-9._-]*)@)"};                   // behind a public key

constexpr std::array kSecretPatterns{
    // in a URL: the password, or a token in its place
    R"(://[^/\s:@"']*:([^/\s"'<>]+)@)", R"(://((?:[A-Za-z_-]+[0-9]|[0-9]+[A-Za-z_-])[A-Za-z0-9_-]{14,})@)",
    // a quoted value may contain white space
    R"((?i)(?:password|passwd|passphrase)["']?\s*[=:]\s*["']([^"']+)["'])",
    // key = value, in environments, headers and JSON
    R"((?i)(?:pass(?:word|wd|phrase)?|secret|token|(?:api|access|private|account|shared|license|encryption|)"
    R"(signing|storage|master|auth|deploy|ingest)[_-]?key|credentials?|auth(?:orization)?|)"
    R"(session[_-]?id)(?:[_-][A-Z0-9_-]*)?["']?\s*[=:]\s*["']?)"
    R"((?:(?:bearer|basic|token)\s+)?([A-Za-z0-9+/=_.~%@!$^&*:-]{6,}))",
    R"((?i)(?:password|passwd|passphrase)=([^\s"'&;,)}\]]+))",
    R"((?i)\b[a-z0-9]+_pwd["']?\s*[=:]\s*["']?([^\s"',;}]+))", R"((?i)[;?&"']pwd=([^\s"';&]+))",
    R"((?i)\b(?:set-)?cookie["']?:\s*["']?([^"'\r\n]+))",
    // arguments of a program
    R"((?i)--?[a-z0-9_-]*(?:password|passwd|passphrase|secret|token|api[_-]?key)\s+["']?)"
    R"(([A-Za-z0-9+/=_.~%@!$^&*:][^\s"']{5,}))",
    R"(\blogin\b[^|;&]*?[\s"',]-p[\s"',=]*([^\s"',]+))", R"(\bsshpass\s+-p\s*["']?([^\s"']+))",
    R"(\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^|;&]*?\s-p([^\s"']+))",
    R"(\bcurl\b[^|;&]*?\s(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s:"']+:([^\s"']+))",
    R"(--(?:src-|dest-)?creds[\s=]+["']?[^\s:"']+:([^\s"']+))",
    R"(\bredis-cli\b[^|;&]*?\s-a\s*["']?([^\s"']+))",
    R"(\bwandb\s+login\s+(?:--?\S+\s+)*([0-9A-Za-z_-]{20,}))", R"(-pass(?:in|out)?[\s=]+pass:([^\s"']+))",
    R"(\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S+))", R"((?i)\bidentified\s+by\s+["']([^"']+))",
    R"(\bbasic-auth\s+["']?[^\s:"']+:([^\s"']+))", R"((?i)\b(?:bearer|basic)\s+([A-Za-z0-9+/=_.~-]{8,}))",
    // secret query parameters of a URL, including those of signed links
    R"((?i)[?&](?:[a-z0-9_.-]*(?:sig|key|auth|code|session|jwt|sas)[a-z0-9_.-]*)=([^&\s"'<>#]{6,}))",
    R"(hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]+))",
    R"(discord(?:app)?\.com/api/webhooks/([0-9]+/[A-Za-z0-9_-]+))", R"(\.webhook\.office\.com/([^\s"']+))",
    R"(\b([0-9]{8,10}:AA[A-Za-z0-9_-]{30,}))", R"(api\.telegram\.org/bot([^\s/"']+))",
    // keys with a service's prefix
    R"(\b((?:hf|gh[opsur]|npm|pypi|glc|gsk|r8|sk_live|sk_test|rk_live|dop_v1|doo_v1|lin_api|shpat)_)"
    R"([A-Za-z0-9]{16,}))",
    R"(\b(dckr_pat_[A-Za-z0-9_-]{12,}))", R"(\b(github_pat_[A-Za-z0-9_]{20,}))",
    R"(\b((?:glpat|glrt|gldt|glcbt|sk|pypi|nvapi|xai|xapp|xox[abeprs]|tskey|GOCSPX|pul)-[A-Za-z0-9_-]{12,}))",
    R"(\b((?:AKIA|ASIA)[0-9A-Z]{16}))", R"(\b(AIza[0-9A-Za-z_-]{30,}))", R"(\b(ya29\.[0-9A-Za-z_-]{20,}))",
    R"(\b(hv[sb]\.[A-Za-z0-9_-]{20,}))", R"(\b(dapi[0-9a-f]{32}))",
    R"(\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}))", R"(\b(ATATT[A-Za-z0-9_=-]{20,}))",
    R"(\b(AGE-SECRET-KEY-1[A-Z0-9]{8,}))", R"(\b(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){4}))",
    R"(\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*))",
    R"(\b(?:ssh-[a-z0-9]+|ecdsa-sha2-[a-z0-9-]+)\s(AAAA[A-Za-z0-9+/=]{20,}))",
    R"(\b((?:glsa|lsv2|sntrys|sntryu|figd|whsec|pscale|phc|phx|rdme)_[A-Za-z0-9_]{16,}))",
    R"((?i)\bprivate-lines:\s*\d+\s+([A-Za-z0-9+/=]{8,}))",
    // short values after a name that consists only of secret words
    R"(\b(?:[A-Z0-9]+_)*(?:KEY|PASS|CREDS?)=["']?([^\s"'$<,;]{6,}))",
    R"((?i)\bpw["']?\s*[=:]\s*["']?([^\s"',;)}\]]{3,}))",
    R"((?i)\bpwd["']?\s*[=:]\s*["']?([^\s"'/.~\\$<,;:}][^\s"'/\\,;:}]{2,}))",
    R"((?i)\b(?:x-)?(?:api|auth|access|private|session)[_-](?:key|token)["']?\s*[=:]\s*["']?([^\s"',;$<]{4,}))",
    R"((?i)(?:^|[\s"'])--?[a-z0-9_-]*(?:password|passwd|passphrase|api[_-]?key)(?:=|\s+)["']?([^\s"'$<-][^\s"']{2,}))",
    R"((?i)(?:^|[\s"'])--?(?:[a-z]+[_-])?token(?:=|\s+)["']?([a-z]+[0-9][^\s"']*))",
    R"((?i)(?:secret|token|password|[a-z]_?key)%3d([A-Za-z0-9+/_.~%-]{4,}))",
    R"((?i)(?:secret|token|password|key)["']?\s*:\s*!!binary\s+["']?([A-Za-z0-9+/=]{4,}))",
    R"(\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)["'\])]*\s*[-=]>\s*["']?([^\s"',;$<]{6,}))",
    R"((?i)\bresponse=\x22([0-9a-f]{16,})\x22)",
    R"((?i)\x22session\x22\s*:\s*\x22([a-z]+[0-9][a-z0-9]{6,})\x22)",
    R"((?i)\b(?:sid|sessid|jsessionid|phpsessid|csrf[a-z_]*)=([a-z0-9%._-]{8,}))",
    R"((?i)\b(?:d|p|q|dp|dq|qinv|priv|private_exponent)\s*[=:]\s*((?:0x)?[0-9a-f]{32,}))",
    // arguments of a program
    R"(\bopenssl\b[^|;&]*?\s-k\s+["']?([^\s"';|]+))",
    R"((?i)\bnet\s+use\s+(?:[a-z]:\s+)?\\\S+\s+([^\s/*]\S*))",
    R"((?i)\b(?:dsn|sqlplus)\s+["']?[a-z]\w*/([^\s/@"']+)@)",
    R"(\becho\s+(?:-n\s+)?["']?([A-Za-z0-9+/]{12,}={0,2})["']?\s*\|\s*base64\s+(?:-d|-D|--decode)\b)"};

// One-time login codes: digits, which the pattern of keys skips.
constexpr const char* kOneTimeCode =
    R"((?i)\b(?:otp|2fa|mfa|one-time|verification)(?:[ _-]?(?:code|password|passcode))?\s*(?:is|[=:])?\s*([0-9]{6,8})\b)";

// A service's key by its form: a short name, followed by random-looking characters.
constexpr const char* kNamedKey =
    R"(\b[a-z][a-z0-9]{1,9}[_-](?:[a-z0-9]{1,8}[_-]){0,2}([A-Za-z0-9]{20,})(?:[^A-Za-z0-9]|$))";

// Account numbers for payments: the check digits decide.
constexpr const char* kIban = R"((?:^|[^\w-])([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)\b)";
// Not part of a sequence of numbers.
constexpr const char* kCard =
    R"((?:^|[^\w\s.-]\s*|[A-Za-z]\s+)([3-6]\d{3}[ -]\d{4}[ -]\d{4}[ -]\d{1,7})(?:\s*$|\s*[^\w\s.-]|\s+[A-Za-z]))";
constexpr const char* kCardNamed =
    R"((?i)\b(?:card|visa|mastercard|amex|kreditkarte)(?:[ _-]?(?:no|nr|number))?\.?\s*[=:]?\s*([3-6]\d{12,18})\b)";
constexpr const char* kSocialSecurity =
    R"((?i)\b(?:ssn|social security(?: no| number)?)\.?\s*(?:is|[=:])?\s*(\d{3}-?\d{2}-?\d{4})\b)";

// Secrets in sentences. A following word that only describes the secret's state remains ("the password is
// wrong").
constexpr std::array kSpokenPatterns{
    R"((?i)\b(?:password|passwd|passphrase|passcode)\s+(?:for\s+(?:\S+\s+){1,4})?(?:is|was|will be)(?:\s+now|\s+set to)?\s*:?\s*)"
    R"(["']?([^\s"']{3,}))",
    R"(\b(?:[A-Z0-9]+[_ ])*(?:KEY|TOKEN|SECRET)\s+(?:is|was)(?:\s+now|\s+set to)?\s*:?\s*)"
    R"(["']?([^\s"']{4,}))",
    // "Password for 'https://…': …", "Enter passphrase for key: …", to the end of the line
    R"((?i)\b(?:password|passphrase|passcode|passwort|kennwort)\s+(?:for|f\xc3\xbcr)\s+(?:(?:key|user)\s+)?(?:'[^']*'|"[^"]*"|\w+)\s*:\s*)"
    R"(([^\s"'][^\r\n]*))",
    // in other languages
    R"((?i)(?:passwort|kennwort|contrase\xc3\xb1a|mot de passe|senha|wachtwoord|\xe5\xaf\x86\xe7\xa0\x81|)"
    R"(\xe5\xaf\x86\xe7\xa2\xbc|\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89|)"
    R"(\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c|\xeb\xb9\x84\xeb\xb0\x80\xeb\xb2\x88\xed\x98\xb8))"
    R"((?:\s*[=:]\s*|\s+(?:ist|est|es|is)\s+)["']?([^\s"',;]{3,}))",
    // name of an environment variable, a space, and a value with a digit
    R"(\b(?:[A-Z0-9]+_)+(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS)\s+["']?)"
    R"(([A-Za-z+/=_.~@!$^&*:-]+[0-9][A-Za-z0-9+/=_.~@!$^&*:-]{3,}|[A-Za-z+/=_.~@!$^&*:-]{6,}[0-9]+|)"
    R"([0-9]+[A-Za-z][A-Za-z0-9+/=_.~-]{4,})(?:[\s"',;]|$))",
    R"((?i)\b(?:user|login|bind|dn|account|admin)\b[^;\r\n]{0,60}?\bpass(?:word|wd)?\s+["']?)"
    R"(([a-z+_.~@!$^&*-]+[0-9][^\s"',;]*))",
    R"((?i)\blog(?:in|ged in|on) as \S+ with ["']?([^\s"',;]*[0-9][^\s"',;]*))",
    R"((?i)\bcreds?:\s*\S+\s*/\s*([^\s"',;]+))", R"((?i)\bkey\s+(?:is|was)\s+["']?([0-9a-f]{24,})\b)",
    R"((?i)\b(?:api|access|secret|private|license|auth|account|encryption|master|storage|ssh|deploy)[ _-]?(?:key|token)\s+)"
    R"((?:is|was)(?:\s+now|\s+set to)?\s*:?\s*["']?([A-Za-z0-9+/=_.~@!$^&*:-]*[0-9][A-Za-z0-9+/=_.~@!$^&*:-]{3,}))"};

constexpr std::array kPhonePatterns{
    R"((?:^|[^\w.+-])(\+[1-9]\d{0,2}[ ()/-]{1,3}\d{1,4}(?:[ ()/-]{1,3}\d{2,8}){1,5})(?:[^\w-]|$))",
    R"((?:^|[^\w.+-])(\+[1-9]\d{10,14})(?:[^\w.-]|$))",
    R"((?:^|[^\w.-])((?:\([2-9]\d{2}\) ?|[2-9]\d{2}-)[2-9]\d{2}-\d{4})(?:[^\w.-]|$))",
    R"((?i)\b(?:tel|phone|telephone|mobile|cell|pager|fax|hotline|whatsapp)(?:\s*(?:no|nr|number))?\.?["']?\s*[=:]?\s*["']?)"
    R"((\+?[0-9(][0-9 ()/.-]{5,18}[0-9]))",
    R"((?i)\bcall\s+(?:me|us|him|her|them|\w+)?\s*(?:at|on)\s+(\+?[0-9(][0-9 ()/.-]{5,18}[0-9]))"};

// A random-looking value after a key and "=" or ":".
constexpr const char* kRandom =
    R"([A-Za-z0-9_.-]+["']?\s*[=:]\s*["']?([A-Za-z0-9+/_-]{24,}={0,2})(?:[\s"',;)}\]]|$))";

// 40 hex digits: a key of Weights & Biases and others, or a commit; the surrounding text decides.
constexpr const char* kHexKey = R"(([0-9A-Fa-f]{40,}))";
constexpr const char* kCommitBefore =
    R"((?i)(?:commit|revision|rev|sha1?|sha1?sum|git|git_version|hash|head|checkout|checked out|merge|merging|)"
    R"(parent|tree|blobs?|tag|ref|branch|snapshots?|objects|version|digest|checksum|etag|build|cherry-pick|bisect|)"
    R"(submodule|updating|fingerprint|thumbprint)\W*)"
    R"((?:\b(?:is|now|at|to|of|from|id|into|by|was|detached)\b\W*){0,3}$|@$|\.\.$)";
constexpr const char* kCommitBehind =
    R"(^(?:\s+(?:refs/|HEAD\b|commit\b|tree\b|blob\b|tag\b|\*| \S)|\.\.|\^|~))";

// Addresses of network devices: 6 octets (Ethernet), 8 (InfiniBand GUIDs) or 20 (IP over InfiniBand).
constexpr const char* kOctets = R"(((?:[0-9A-Fa-f]{2}[:-]){5,}[0-9A-Fa-f]{2}))";
constexpr std::array kDevicePatterns{
    R"(\b((?:[0-9a-f]{4}\.){2}[0-9a-f]{4})\b)",
    R"((?i)\bmac(?:[ _-]?addr(?:ess)?)?["']?\s*[=:]\s*["']?([0-9a-f]{12})\b)",
    R"(\benx([0-9a-f]{12})\b)",
    R"((?i)guid["']?\s*[=:]?\s*["']?((?:0x)?[0-9a-f]{16}|(?:[0-9a-f]{4}:){3}[0-9a-f]{4})\b)",
    R"(\bwwn-0x([0-9a-f]{16})\b)",
    R"(\b(?:eui|naa)\.([0-9a-f]{16,32})\b)",
    R"(\b(?:GPU|MIG)-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\b)",
    R"((?i)\b(?:bios|system|machine|product|dmi)[ _-](?:uuid|id)["']?\s*[=:]?\s*["']?)"
    R"(([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32})\b)"};

constexpr std::array kSerialPatterns{
    R"((?i)\b(?:gpu|board|baseboard|module|chassis|disk|drive|nvme|nic|psu|dimm|hgx|card|part|system|node)[ _-]?(?:\d{1,2}[ _-])?)"
    R"(serials?\s+(?:is\s+|was\s+)?["'#]?([A-Z0-9][A-Z0-9-]{4,}))",
    R"((?i)serial(?:[ _-]?(?:number|num|no\.?|id))?["']?\s*[=:]\s*["']?([A-Z0-9][A-Z0-9._-]{4,}))",
    R"((?i)serial[ _-]?(?:number|num|no\.?)\s+(?:is\s+)?["']?([A-Z0-9][A-Z0-9-]{4,}))",
    R"(\bS/?N["']?\s*[=:#]\s*["']?([A-Z0-9][A-Z0-9-]{4,}))",
    R"((?i)\bs/n\s+([A-Z0-9][A-Z0-9-]{4,}))",
    R"((?i)\b(?:asset|service)[ _-]?tag["']?\s*[=:]\s*["']?([A-Z0-9][A-Z0-9-]{4,}))",
    R"(/by-id/(?:nvme|ata|scsi|usb)-[^\s/]*_([A-Z0-9]{8,}))"};

// Names with these endings are hosts; file names have other endings ("train.py", "libcuda.so.1").
constexpr const char* kHostname =
    R"(((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+)"
    R"((?:com|net|org|edu|gov|mil|int|io|ai|cloud|dev|app|tech|info|local|internal|intranet|lan|corp|home|)"
    R"(private|localdomain|svc|cluster|test|example|eu|de|at|ch|fr|nl|be|uk|ie|it|es|pt|pl|cz|se|no|dk|fi|us|ca|)"
    R"(mx|br|ar|cl|cn|jp|kr|tw|hk|sg|in|au|nz|za|il|tr|ae|sa|ru|ua)\b))";

// Three labels or more, with an ending that files have too.
constexpr const char* kRareHostname =
    R"(((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){2,}(?:systems|xyz|online|academy|university|institute)\b))";

// A person's name at a host without a domain, and spelled-out addresses.
constexpr const char* kBareEmail = R"(\b([a-z]+\.[a-z]+@[a-z][a-z0-9-]{2,})(?:[\s,;>)\x22']|$))";
constexpr const char* kSpelledEmail =
    R"((?i)\b([a-z0-9._+-]+ (?:at|\(at\)|\[at\]) [a-z0-9-]+(?: (?:dot|\(dot\)|\[dot\]) [a-z0-9-]+)+))";
constexpr const char* kEmail = R"(([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}))";
constexpr const char* kIpv4 = R"((\b(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}\b))";
constexpr const char* kIpv6 = R"(([0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*))";

}  // namespace culprit::cli
