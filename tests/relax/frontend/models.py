"""The models on which importing is proved, written in torch.nn, with random weights."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """Two fully connected layers."""

    def __init__(self, inputs=784, hidden=128, classes=10):
        super().__init__()
        self.linear0 = nn.Linear(inputs, hidden)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.linear1(self.relu(self.linear0(x)))


class LeNet(nn.Module):
    """LeCun et al., 1998, with ReLU and max pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), (2, 2))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)


class BasicBlock(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False),
                                            nn.BatchNorm2d(outside))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    """He et al., 2015."""

    def __init__(self, classes=1000, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        for k in range(1, 5):
            stride = 1 if k == 1 else 2
            setattr(self, f"layer{k}", nn.Sequential(
                BasicBlock(sizes[k - 1], sizes[k], stride), BasicBlock(sizes[k], sizes[k])))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(sizes[4], classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def _conv_bn(inside, outside, kernel=3, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """Wider inside than outside, depthwise in the middle."""

    def __init__(self, inside, outside, stride, expand):
        super().__init__()
        hidden = inside * expand
        self.residual = stride == 1 and inside == outside
        layers = [] if expand == 1 else [_conv_bn(inside, hidden, 1)]
        layers += [_conv_bn(hidden, hidden, 3, stride, hidden),
                   nn.Conv2d(hidden, outside, 1, bias=False), nn.BatchNorm2d(outside)]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """Sandler et al., 2018. `scale` multiplies the number of channels."""

    SETTING = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
               (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, classes=1000, scale=1.0, depth=None):
        super().__init__()

        def channels(n):
            return max(8, int(n * scale + 4) // 8 * 8)

        inside = channels(32)
        features = [_conv_bn(3, inside, stride=2)]
        for expand, size, count, stride in self.SETTING:
            for k in range(count if depth is None else min(count, depth)):
                features.append(InvertedResidual(inside, channels(size), stride if k == 0 else 1,
                                                 expand))
                inside = channels(size)
        last = max(1280, channels(1280)) if scale >= 1 else channels(1280)
        features.append(_conv_bn(inside, last, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x):
        x = self.features(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


class CausalSelfAttention(nn.Module):
    """Heads of attention that look back only; written out, as in GPT-2."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.register_buffer("bias", torch.tril(torch.ones(context, context)).view(
            1, 1, context, context))

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.c_attn(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class FusedSelfAttention(nn.Module):
    """The same by torch's scaled_dot_product_attention."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.c_attn(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class GPTBlock(nn.Module):
    """A decoder block of GPT-2 (Radford et al., 2019)."""

    def __init__(self, width=32, heads=4, context=64, fused=False):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = (FusedSelfAttention if fused else CausalSelfAttention)(width, heads, context)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    """A small language model of decoder blocks."""

    def __init__(self, vocabulary=100, width=32, heads=4, layers=2, context=64, fused=False):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList([GPTBlock(width, heads, context, fused) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        length = tokens.size(1)
        places = torch.arange(0, length, dtype=torch.long)
        x = self.drop(self.wte(tokens) + self.wpe(places))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class BertLayer(nn.Module):
    """An encoder layer of BERT (Devlin et al., 2018), with a mask of what is padding."""

    def __init__(self, width=32, heads=4, inner=64):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dense = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, inner)
        self.output = nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        scores = scores + (1.0 - mask[:, None, None, :]) * -10000.0
        weights = self.dropout(nn.functional.softmax(scores, dim=-1))
        y = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        y = y.view(x.size(0), x.size(1), -1)
        x = self.norm1(self.dropout(self.dense(y)) + x)
        y = F.gelu(self.intermediate(x))
        return self.norm2(self.dropout(self.output(y)) + x)


class UNet(nn.Module):
    """Down twice and up twice, with ways across (Ronneberger et al., 2015)."""

    def __init__(self, width=8):
        super().__init__()

        def double(inside, outside):
            return nn.Sequential(
                nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.SiLU(),
                nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.SiLU())

        self.down1, self.down2 = double(3, width), double(width, 2 * width)
        self.middle = double(2 * width, 4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.join1 = double(4 * width, 2 * width)
        self.up2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join2 = double(3 * width, width)
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.avg_pool2d(b, 2))
        c = self.join1(torch.cat([self.up1(c), b], dim=1))
        return self.last(self.join2(torch.cat([self.up2(c), a], 1)))


#: name -> (model, arguments): small enough for a test
def small_models():
    """Models and example inputs."""
    torch.manual_seed(0)
    image = torch.rand(1, 3, 32, 32)
    words = torch.rand(2, 6, 32)
    made = {
        "mlp": (MLP(), (torch.rand(1, 784),)),
        "lenet": (LeNet(), (torch.rand(2, 1, 28, 28),)),
        "resnet18": (ResNet18(10, 16), (image,)),
        "mobilenet_v2": (MobileNetV2(10, 0.5, 2), (image,)),
        "mobilenet_v2_short": (MobileNetV2(10, 0.25, 1), (image,)),
        "gpt2_block": (GPTBlock(), (words,)),
        "gpt2_block_fused": (GPTBlock(fused=True), (words,)),
        "bert_layer": (BertLayer(), (words, torch.ones(2, 6).tril(4))),
        "unet": (UNet(), (image[..., :16, :16],)),
    }
    for model, _ in made.values():
        settle(model)
    return made


#: name -> () -> (model, arguments), as large as they are used
FULL_SIZE = {
    "resnet18": lambda: (ResNet18(), (torch.rand(1, 3, 224, 224),)),
    "mobilenet_v2": lambda: (MobileNetV2(), (torch.rand(1, 3, 224, 224),)),
    "gpt2_block": lambda: (GPTBlock(768, 12, 1024), (torch.rand(1, 128, 768),)),
    "bert_layer": lambda: (BertLayer(768, 12, 3072),
                           (torch.rand(1, 128, 768), torch.ones(1, 128))),
    "unet": lambda: (UNet(32), (torch.rand(1, 3, 128, 128),)),
}


def settle(model):
    """The model for inference; the statistics of its batches are not 0 and 1."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.1, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return model.eval()
