// All of the library. Standard C++ and nothing else.
#pragma once
#include "hlo/array.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"
#include "hlo/progress.h"
#include "hlo/shape.h"
#include "hlo/universe.h"
#include "hlo/version.h"
