#pragma once
#include "fornax/core/copy.h"
