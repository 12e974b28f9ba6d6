// What a screen reader and an eye need of everything that can be used: a name, a label, contrast, no jumping focus.
() => {
  const faults = [];
  const seen = (node) => node.getClientRects().length && getComputedStyle(node).visibility !== 'hidden';
  const name = (node) => node.getAttribute('aria-label') || (node.labels && [...node.labels].map((one) => one.innerText).join(' ')) || node.innerText || node.textContent;
  for (const node of document.querySelectorAll('button, a[href], input, select, textarea, [tabindex="0"], [role]'))
    if (seen(node) && !(name(node) || '').trim() && node.getAttribute('role') !== 'status' && !node.getAttribute('aria-live')) faults.push('no name: ' + node.outerHTML.slice(0, 80));
  for (const node of document.querySelectorAll('svg.chart')) if (!node.getAttribute('aria-label')) faults.push('no name: chart');
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
  if (document.querySelector('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])')) faults.push('tab order by hand');
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) { const tint = rgb(getComputedStyle(at).backgroundColor); if (tint.length && tint[3] !== 0) { layers.push(tint); if (tint[3] === undefined || tint[3] === 1) break; } }
    return layers.reverse().reduce((below, [r, g, b, a = 1]) => [r, g, b].map((v, at) => v * a + below[at] * (1 - a)), [255, 255, 255]);
  };
  for (const node of document.querySelectorAll('main *, header *')) {
    if (!seen(node) || node.closest(':disabled, option, optgroup, svg') || ![...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim())) continue;
    const [one, two] = [light(rgb(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(1)}: ${node.outerHTML.slice(0, 80)}`);
  }
  return faults;
}
