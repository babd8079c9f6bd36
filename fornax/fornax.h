// Everything a program needs: tensors, operators, autograd.
#pragma once

#include "fornax/autograd/autograd.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/random.h"
