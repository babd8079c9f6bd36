// Everything a program needs: tensors, operators, autograd, modules, optimisers, data.
#pragma once

#include "fornax/autograd/autograd.h"
#include "fornax/data/dataset.h"
#include "fornax/data/loader.h"
#include "fornax/data/mnist.h"
#include "fornax/data/samplers.h"
#include "fornax/data/transforms.h"
#include "fornax/nn/nn.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/indexing.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/random.h"
#include "fornax/optim/optim.h"
#include "fornax/serialize/checkpoint.h"
