// Numbers into and out of the bytes of this room's formats: base/bytes.h.
#pragma once

#include "base/bytes.h"
