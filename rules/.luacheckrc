-- What a rule file may name; the loader allows no more.
stds.culprit = {
  read_globals = {
    "rule", "override",
    "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
    text = { fields = { "has", "match", "number" } },
    string = { fields = { "byte", "char", "format", "len", "lower", "upper", "sub" } },
    math = { fields = {
      "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max",
      "maxinteger", "min", "mininteger", "modf", "pi", "rad", "sin", "sqrt", "tan", "tointeger", "type", "ult",
    } },
  },
}
std = "culprit"
max_line_length = false -- messages are as long as they are
exclude_files = { "culprit.lua" } -- annotations
