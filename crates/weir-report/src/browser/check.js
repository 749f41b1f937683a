// What a reader of a page would stumble over, as a list of sentences. Runs in the page, with every folded part open.
(medium) => {
  const complaints = new Set();
  const root = document.documentElement, width = root.clientWidth;
  const where = (node) => {
    const part = node.closest('[id]');
    const text = node.textContent.trim().replace(/\s+/g, ' ').slice(0, 50);
    return `<${node.tagName} class="${node.getAttribute('class') || ''}"> in #${part ? part.id : ''} “${text}”`;
  };
  const complain = (what, node) => complaints.add(`${what}: ${where(node)}`);
  document.querySelectorAll('details').forEach((folded) => { folded.open = true; });
  const seen = (node) => node.getClientRects().length > 0;
  const drawn = (node) => node instanceof SVGElement;

  // Boxes: nothing leaves the page, and nothing is cut off by the box it is in.
  if (root.scrollWidth > width) complain(`the page is ${root.scrollWidth} px wide in ${width}`, root);
  for (const node of document.querySelectorAll('body *')) {
    if (drawn(node) || !seen(node)) continue;
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    const lacks = node.scrollWidth - node.clientWidth;
    if (!node.closest('.scroll table') && (box.right > width + 1 || box.left < -1)) complain('leaves the page', node);
    if (node.matches('.scroll') && medium !== 'phone' && lacks > 1) complain(`a table is cut by ${lacks} px`, node);
    if (node.matches('.scroll') && medium === 'print' && node.scrollHeight > node.clientHeight + 1) complain('rows are cut', node);
    if (/hidden|clip/.test(style.overflowX) && lacks > 1) complain('is cut', node);
    if (node.matches('th,td') && lacks > 1) complain('text leaves its cell', node);
  }
  for (const text of document.querySelectorAll('svg text')) {
    if (!seen(text)) continue;
    const box = text.getBoundingClientRect(), drawing = text.ownerSVGElement.getBoundingClientRect();
    const out = Math.max(drawing.left - box.left, box.right - drawing.right, drawing.top - box.top, box.bottom - drawing.bottom);
    if (out > 2) complain(`text leaves its drawing by ${Math.round(out)} px`, text);
  }

  // Links and what is fetched.
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  if (new Set(ids).size !== ids.length) complain('an id stands twice', root);
  document.querySelectorAll('a[href^="#"]').forEach((link) => {
    if (!document.getElementById(link.getAttribute('href').slice(1))) complain('a link leads nowhere', link);
  });
  if (performance.getEntriesByType('resource').length > 0) complain('the page fetches something', root);

  // Contrast of text, WCAG 2.2, 1.4.3 (AA).
  const colour = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const over = (top, alpha, under) => top.map((value, i) => value * alpha + under[i] * (1 - alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (node) => {
    if (!node) return [255, 255, 255];
    const { rgb, alpha } = colour(getComputedStyle(node).backgroundColor);
    return alpha === 1 ? rgb : over(rgb, alpha, ground(node.parentElement));
  };
  const opacity = (node) => node ? Number(getComputedStyle(node).opacity) * opacity(node.parentElement) : 1;
  const painted = new Map();
  const shapes = (drawing) => {
    if (!painted.has(drawing)) {
      const all = [...drawing.querySelectorAll('rect,path')].map((shape) => ({ shape, style: getComputedStyle(shape) }));
      painted.set(drawing, all.filter(({ style }) => style.fill !== 'none').map(({ shape, style }) => {
        const { rgb, alpha } = colour(style.fill);
        return { shape, rgb, alpha: alpha * Number(style.fillOpacity) * opacity(shape), box: shape.getBBox() };
      }));
    }
    return painted.get(drawing);
  };
  const beneath = (text, style) => {
    let rgb = ground(text.ownerSVGElement);
    if (style.stroke !== 'none' && style.paintOrder.startsWith('stroke')) return over(colour(style.stroke).rgb, 1, rgb);
    const box = text.getBBox(), middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    for (const { shape, rgb: fill, alpha, box: area } of shapes(text.ownerSVGElement)) {
      const aside = middle.x < area.x || middle.x > area.x + area.width || middle.y < area.y || middle.y > area.y + area.height;
      const later = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING;
      if (!aside && !later && shape.isPointInFill(middle)) rgb = over(fill, alpha, rgb);
    }
    return rgb;
  };
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const node = nodes.currentNode.parentElement;
    if (!nodes.currentNode.data.trim() || node.matches('title,desc') || !seen(node)) continue;
    const style = getComputedStyle(node), svg = drawn(node);
    const { rgb, alpha } = colour(svg ? style.fill : style.color);
    const under = svg ? beneath(node, style) : ground(node);
    const size = parseFloat(style.fontSize);
    const large = !svg && (size >= 24 || (size >= 18.66 && style.fontWeight >= 700));
    const contrast = ratio(over(rgb, alpha * opacity(node), under), under);
    if (contrast < (large ? 3 : 4.5)) complain(`contrast of ${contrast.toFixed(2)}`, node);
  }
  return [...complaints];
}
