// Everything of fornax::nn.
#pragma once

#include "fornax/nn/activation.h"
#include "fornax/nn/containers.h"
#include "fornax/nn/conv.h"
#include "fornax/nn/dropout.h"
#include "fornax/nn/embedding.h"
#include "fornax/nn/init.h"
#include "fornax/nn/linear.h"
#include "fornax/nn/loss.h"
#include "fornax/nn/norm.h"
#include "fornax/nn/pooling.h"
#include "fornax/nn/softmax.h"
#include "fornax/nn/utils.h"
