"""Small models of images, as many projects write them, with random weights."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_bn(c, k, size, stride=1, groups=1, act=nn.SiLU, dilation=1):
    return nn.Sequential(
        nn.Conv2d(c, k, size, stride, dilation * ((size - 1) // 2), dilation,
                  groups, bias=False),
        nn.BatchNorm2d(k), act())


class SqueezeExcite(nn.Module):
    def __init__(self, c, reduced, act, gate):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(c, reduced, 1), nn.Conv2d(reduced, c, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        return x * self.gate(self.up(self.act(self.down(self.pool(x)))))


class Inverted(nn.Module):
    """Expand, depthwise, squeeze and excite, project: MobileNet, EfficientNet."""

    def __init__(self, c, k, size, stride, act, gate, expand=4, se=True):
        super().__init__()
        e = c * expand
        parts = [conv_bn(c, e, 1, act=act),
                 conv_bn(e, e, size, stride, e, act)]
        if se:
            parts.append(SqueezeExcite(e, max(c // 2, 4), nn.ReLU, gate))
        parts += [nn.Conv2d(e, k, 1, bias=False), nn.BatchNorm2d(k)]
        self.body, self.adds = nn.Sequential(*parts), stride == 1 and c == k

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, 16, 3, 2, act=nn.ReLU6),
            Inverted(16, 16, 3, 1, nn.ReLU6, None, se=False),
            Inverted(16, 24, 3, 2, nn.ReLU6, None, se=False),
            Inverted(24, 24, 3, 1, nn.ReLU6, None, se=False))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, 10))

    def forward(self, image):
        return self.head(self.features(image).mean([2, 3]))


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, 16, 3, 2, act=nn.Hardswish),
            Inverted(16, 16, 3, 1, nn.ReLU, nn.Hardsigmoid),
            Inverted(16, 24, 5, 2, nn.Hardswish, nn.Hardsigmoid),
            conv_bn(24, 48, 1, act=nn.Hardswish))
        self.head = nn.Sequential(nn.Linear(48, 64), nn.Hardswish(),
                                  nn.Dropout(0.2), nn.Linear(64, 10))

    def forward(self, image):
        x = F.adaptive_avg_pool2d(self.features(image), 1)
        return self.head(torch.flatten(x, 1))


class EfficientNet(nn.Module):
    """With TensorFlow's padding: more at the end."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, bias=False)
        self.bn = nn.BatchNorm2d(16, eps=1e-3)
        self.blocks = nn.Sequential(
            Inverted(16, 24, 3, 2, nn.SiLU, nn.Sigmoid),
            Inverted(24, 24, 5, 1, nn.SiLU, nn.Sigmoid))
        self.head = nn.Linear(24, 10)

    def forward(self, image):
        x = F.silu(self.bn(self.stem(F.pad(image, (0, 1, 0, 1)))))
        x = self.blocks(x).mean((2, 3))
        return F.softmax(self.head(x), dim=1)


class ChannelNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(c) + 0.5)
        self.bias = nn.Parameter(torch.randn(c) * 0.1)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(variance + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.depthwise = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.LayerNorm(c, eps=1e-6)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(torch.rand(c))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 24, 4, 4), ChannelNorm(24), ConvNextBlock(24),
            ChannelNorm(24), nn.Conv2d(24, 48, 2, 2), ConvNextBlock(48))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, image):
        return self.head(self.norm(self.body(image).mean([-2, -1])))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 64))
        self.places = nn.Parameter(torch.randn(1, 17, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, 'gelu',
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.head(self.norm(self.body(x + self.places))[:, 0])


class SwinBlock(nn.Module):
    def __init__(self, c, heads, side, window, shift):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.mlp = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(),
                                 nn.Linear(2 * c, c))
        self.table = nn.Parameter(torch.randn((2 * window - 1)**2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(window),
                                        torch.arange(window),
                                        indexing='ij')).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer('index',
                             apart[..., 0] * (2 * window - 1) + apart[..., 1])
        region = torch.zeros(1, side, side, 1)
        if shift:
            cuts = (slice(0, -window), slice(-window, -shift),
                    slice(-shift, None))
            for number, (h, w) in enumerate((h, w) for h in cuts for w in cuts):
                region[:, h, w] = number
        rows = self.windows(region).squeeze(-1)
        self.register_buffer('mask', torch.where(
            rows[:, None] != rows[:, :, None], -100.0, 0.0))

    def windows(self, x):
        n, h, w, c = x.shape
        s = self.window
        x = x.view(n, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, s * s, c)

    def forward(self, x):
        n, h, w, c = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.windows(y)
        b, t, _ = y.shape
        q, k, v = self.qkv(y).reshape(b, t, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4).unbind(0)
        scores = q * (c // self.heads)**-0.5 @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        if self.shift:
            m = self.mask.shape[0]
            scores = scores.view(b // m, m, self.heads, t, t)
            scores = scores + self.mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, t, t)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        s = self.window
        y = y.view(n, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(n, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.first = nn.Sequential(SwinBlock(32, 2, 8, 4, 0),
                                   SwinBlock(32, 2, 8, 4, 2))
        self.norm = nn.LayerNorm(128)
        self.merge = nn.Linear(128, 64, bias=False)
        self.second = SwinBlock(64, 4, 4, 4, 0)
        self.head = nn.Linear(64, 10)

    def forward(self, image):
        x = self.first(self.patches(image).permute(0, 2, 3, 1))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2],
                       x[:, 1::2, 1::2]], -1)
        x = self.second(self.merge(self.norm(x)))
        return self.head(x.mean((1, 2)))


class UNetBlock(nn.Module):
    def __init__(self, c, k, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, c), nn.GroupNorm(4, k)
        self.conv1 = nn.Conv2d(c, k, 3, padding=1)
        self.conv2 = nn.Conv2d(k, k, 3, padding=1)
        self.time = nn.Linear(time, k)
        self.skip = nn.Conv2d(c, k, 1) if c != k else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class DiffusionUNet(nn.Module):
    """Group norm, time embedding, attention, both ways of upsampling."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, 16, 3, padding=1)
        self.embed = nn.Sequential(nn.Linear(32, 64), nn.SiLU(),
                                   nn.Linear(64, 64))
        self.down1, self.down2 = UNetBlock(16, 16, 64), UNetBlock(16, 32, 64)
        self.shrink = nn.Conv2d(16, 16, 3, 2, 1)
        self.norm = nn.GroupNorm(4, 32)
        self.qkv, self.out = nn.Conv1d(32, 96, 1), nn.Conv1d(32, 32, 1)
        self.grow = nn.ConvTranspose2d(32, 16, 2, 2)
        self.up = UNetBlock(48, 16, 64)
        self.leave = nn.Sequential(nn.GroupNorm(4, 32), nn.SiLU(),
                                   nn.Conv2d(32, 3, 3, padding=1))

    def forward(self, image, time):
        rates = torch.exp(-torch.arange(16) * 0.5)
        angles = time[:, None].float() * rates[None]
        t = self.embed(torch.cat([angles.sin(), angles.cos()], -1))
        a = self.down1(self.enter(image), t)
        b = self.down2(self.shrink(a), t)
        n, c, h, w = b.shape
        q, k, v = self.qkv(self.norm(b).reshape(n, c, h * w)).chunk(3, 1)
        weights = torch.softmax(torch.einsum('bct,bcs->bts', q, k) * c**-0.5, -1)
        y = self.out(torch.einsum('bts,bcs->bct', weights, v))
        b = b + y.reshape(n, c, h, w)
        wide = F.interpolate(b, scale_factor=2.0, mode='nearest')
        u = self.up(torch.cat([wide, a], 1), t)
        smooth = F.interpolate(u, size=(16, 16), mode='bilinear',
                               align_corners=False)
        return self.leave(torch.cat([self.grow(b), smooth], 1))


class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.ReLU),
                                  nn.MaxPool2d(3, 2, 1))
        self.parts = nn.ModuleList(
            [conv_bn(16, 8, 1, act=nn.ReLU)] +
            [conv_bn(16, 8, 3, dilation=d, act=nn.ReLU) for d in (2, 4)])
        self.pool = conv_bn(16, 8, 1, act=nn.ReLU)
        self.head = nn.Conv2d(32, 5, 1)

    def forward(self, image):
        x = self.stem(image)
        parts = [part(x) for part in self.parts]
        pooled = self.pool(F.adaptive_avg_pool2d(x, 1))
        parts.append(F.interpolate(pooled, size=x.shape[-2:], mode='bilinear',
                                   align_corners=False))
        y = self.head(torch.cat(parts, 1))
        y = F.interpolate(y, size=image.shape[-2:], mode='bilinear',
                          align_corners=True)
        return y, y.argmax(1)


class Yolo(nn.Module):
    """Pools of one scale, a pyramid, and boxes decoded in the graph."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 6, 2), conv_bn(16, 32, 3, 2))
        self.deep = nn.Sequential(conv_bn(32, 32, 3, 2), conv_bn(32, 16, 1))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.merge = conv_bn(64, 32, 1)
        self.heads = nn.ModuleList([nn.Conv2d(64, 14, 1), nn.Conv2d(32, 14, 1)])
        self.register_buffer('anchors', torch.rand(2, 2, 2) * 16 + 4)

    def decode(self, x, level, stride):
        n, _, h, w = x.shape
        x = x.view(n, 2, 7, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing='ij')
        grid = torch.stack((xs, ys), 2).view(1, 1, h, w, 2).float()
        xy, wh, rest = x.split((2, 2, 3), 4)
        xy = (xy * 2 + grid - 0.5) * stride
        wh = (wh * 2)**2 * self.anchors[level].view(1, 2, 1, 1, 2)
        return torch.cat((xy, wh, rest), 4).view(n, -1, 7)

    def forward(self, image):
        a = self.stem(image)
        b = self.deep(a)
        pools = [b]
        for _ in range(3):
            pools.append(self.pool(pools[-1]))
        b = self.merge(torch.cat(pools, 1))
        up = F.interpolate(b, scale_factor=2, mode='nearest')
        return torch.cat([self.decode(self.heads[0](torch.cat([a, up], 1)), 0, 4),
                          self.decode(self.heads[1](b), 1, 8)], 1)


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.ReLU),
                                  nn.AvgPool2d(3, 2, 1))
        self.branch = nn.Sequential(conv_bn(8, 8, 1, act=nn.ReLU),
                                    conv_bn(8, 8, 3, groups=8, act=nn.ReLU))
        self.mix = conv_bn(16, 32, 3, groups=4, act=nn.LeakyReLU)
        self.head = nn.Linear(32 * 4, 10)

    def forward(self, image):
        a, b = self.stem(image).chunk(2, 1)
        x = torch.cat([a, self.branch(b)], 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.head(F.adaptive_avg_pool2d(self.mix(x), 2).flatten(1))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.ConvTranspose2d(24, 32, 4, 1, 0, bias=False),
            nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
            nn.BatchNorm2d(16), nn.PReLU(16),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1, groups=2),
            nn.InstanceNorm2d(8, affine=True), nn.ELU(), nn.ReflectionPad2d(1),
            nn.Conv2d(8, 12, 3), nn.PixelShuffle(2), nn.Tanh())

    def forward(self, noise):
        return self.body(noise)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(16 + 8 * i) for i in range(3))
        self.convs = nn.ModuleList(
            nn.Conv2d(16 + 8 * i, 8, 3, padding=1, bias=False)
            for i in range(3))
        self.pool = nn.AvgPool2d(2, 2)
        self.head = nn.Linear(40, 10)

    def forward(self, image):
        x = F.max_pool2d(self.stem(image), 3, 2, ceil_mode=True)
        for norm, conv in zip(self.norms, self.convs):
            x = torch.cat([x, conv(F.relu(norm(x)))], 1)
        return F.log_softmax(self.head(self.pool(x).amax((2, 3))), -1)


def image(side, n=2):
    return {'image': torch.randn(n, 3, side, side)}


MODELS = {
    'mobilenet_v2': (MobileNetV2, lambda: image(32)),
    'mobilenet_v3': (MobileNetV3, lambda: image(32)),
    'efficientnet': (EfficientNet, lambda: image(32)),
    'convnext': (ConvNext, lambda: image(32)),
    'vit': (VisionTransformer, lambda: image(32)),
    'swin': (Swin, lambda: image(32)),
    'diffusion_unet': (DiffusionUNet, lambda: {
        **image(16), 'time': torch.tensor([3, 17])}),
    'deeplab': (DeepLab, lambda: image(33, 1)),
    'yolo': (Yolo, lambda: image(64, 1)),
    'shufflenet': (ShuffleNet, lambda: image(32)),
    'generator': (Generator, lambda: {'noise': torch.randn(2, 24, 1, 1)}),
    'densenet': (DenseNet, lambda: image(31)),
}
