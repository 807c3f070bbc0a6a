// All of the library. Standard C++ and nothing else.
#pragma once
#include "hlo/array.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/executor.h"
#include "hlo/judgement.h"
#include "hlo/module.h"
#include "hlo/pass.h"
#include "hlo/progress.h"
#include "hlo/recording.h"
#include "hlo/shape.h"
#include "hlo/universe.h"
#include "hlo/version.h"
